#include "format/tokenizer_section.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <type_traits>

#include "base/errorf.h"
#include "base/hash.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

// As FORMAT.md draws it.
struct SectionHeader {
  std::uint32_t model = 0, pre_tokenizer = 0, flags = 0;
  std::uint32_t n_tokens = 0, n_merges = 0, n_special = 0, n_end = 0;
  std::uint32_t string_slots = 0, merge_slots = 0, text_bytes = 0;
  std::uint32_t bos = kNoToken, eos = kNoToken, unknown = kNoToken, padding = kNoToken;
  std::uint32_t reserved[2] = {};
};
static_assert(sizeof(SectionHeader) == 64);

constexpr std::uint32_t kFlagAddBos = 1, kFlagAddEos = 2, kFlagWholePieces = 4, kFlagNfc = 8,
                        kFlagSpacePrefix = 16;
constexpr std::uint32_t kByteBpeFlags = kFlagAddBos | kFlagAddEos | kFlagWholePieces | kFlagNfc;
constexpr std::uint32_t kSentencePieceFlags = kFlagAddBos | kFlagAddEos | kFlagSpacePrefix;
constexpr std::uint32_t kMaxSpecialBytes = 1024;  // finding one may cost this much a byte of text
constexpr std::uint32_t kMaxProbes = 256;         // slots that a lookup tries
constexpr std::uint32_t kEmptySlot = 0xffffffff;

std::uint64_t hash(std::string_view bytes) { return xxh3(std::as_bytes(std::span(bytes))); }
std::uint64_t hash(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t pair[2] = {left, right};
  return xxh3(std::as_bytes(std::span(pair)));
}

// The first of the slots that a lookup tries for which accept() holds; null if there is none.
template <class Slot, class Accept>
Slot* probe(std::span<Slot> slots, std::uint64_t hash, Accept accept) {
  for (std::uint32_t i = 0; i < kMaxProbes; ++i) {
    Slot& slot = slots[(hash + i) & (slots.size() - 1)];
    if (accept(slot)) return &slot;
  }
  return nullptr;
}

// Of two tokens with the same bytes, find() gives the one of the lower precedence number.
int precedence(TokenType type) {
  if (type == TokenType::unused) return 3;
  if (type == TokenType::byte) return 2;
  return is_special(type) ? 1 : 0;
}

std::size_t string_slots(const Vocabulary& v) { return std::bit_ceil(2 * v.tokens.size()); }
std::size_t merge_slots(const Vocabulary& v) { return std::bit_ceil(2 * v.merges.size() + 1); }

void fill_string_table(const Vocabulary& v, std::span<std::uint32_t> slots) {
  std::ranges::fill(slots, kEmptySlot);
  for (int pass = 0; pass <= 3; ++pass) {
    for (std::uint32_t id = 0; id < v.tokens.size(); ++id) {
      const std::string& token = v.tokens[id];
      if (token.empty() || precedence(v.types[id]) != pass) continue;
      std::uint32_t* const slot = probe(slots, hash(token), [&](std::uint32_t other) {
        return other == kEmptySlot || v.tokens[other] == token;
      });
      if (slot && *slot == kEmptySlot) *slot = id;
    }
  }
}

void fill_merge_table(const Vocabulary& v, std::span<std::uint32_t> slots) {
  std::ranges::fill(slots, kEmptySlot);
  for (std::uint32_t rank = 0; rank < v.merges.size(); ++rank) {
    const Vocabulary::Merge& merge = v.merges[rank];
    std::uint32_t* const slot =
        probe(slots, hash(merge.left, merge.right), [&](std::uint32_t other) {
          return other == kEmptySlot ||
                 (v.merges[other].left == merge.left && v.merges[other].right == merge.right);
        });
    if (slot && *slot == kEmptySlot) *slot = rank;
  }
}

std::vector<std::uint32_t> special_list(const Vocabulary& v) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < v.tokens.size(); ++id) {
    if (is_special(v.types[id]) && !v.tokens[id].empty()) ids.push_back(id);
  }
  std::ranges::stable_sort(ids, std::greater{},
                           [&](std::uint32_t id) { return v.tokens[id].size(); });
  return ids;
}

std::vector<std::uint32_t> end_list(const Vocabulary& v) {
  std::vector<std::uint32_t> ids = v.end_tokens;
  if (v.eos != kNoToken) ids.push_back(v.eos);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Arrays of the section, one after another. The section is known to hold them.
template <class Byte>
class Arrays {
 public:
  explicit Arrays(std::span<Byte> bytes) : bytes_(bytes) {}
  template <class T>
  auto take(std::size_t n) {
    using Value = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    auto* const values = reinterpret_cast<Value*>(bytes_.data());
    bytes_ = bytes_.subspan(n * sizeof(T));
    return std::span<Value>(values, n);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    std::ranges::copy(values, take<T>(values.size()).begin());
  }

 private:
  std::span<Byte> bytes_;
};

// The first value that is neither below n nor, where that is allowed, all ones; null if there is
// none. The sweep has no exit and no branch, so that it runs at the speed of memory.
const std::uint32_t* find_outside(std::span<const std::uint32_t> values, std::uint32_t n,
                                  bool all_ones_allowed) {
  const std::uint32_t shift = all_ones_allowed ? 1 : 0;  // turns all ones into 0
  std::uint32_t largest = 0;
  for (const std::uint32_t value : values) largest = std::max(largest, value + shift);
  if (values.empty() || largest < n + shift) return nullptr;
  return &*std::ranges::find_if(values,
                                [&](std::uint32_t value) { return value + shift >= n + shift; });
}

bool is_sentencepiece(const SectionHeader& h) {
  return h.model == static_cast<std::uint32_t>(TokenizerModel::sentencepiece_bpe);
}

std::uint64_t section_bytes(const SectionHeader& h) {
  const std::uint64_t words = std::uint64_t{h.n_tokens} + 1 + 3 * std::uint64_t{h.n_merges} +
                              h.string_slots + h.merge_slots + h.n_special + h.n_end +
                              (is_sentencepiece(h) ? h.n_tokens : 0);
  return sizeof h + 4 * words + h.n_tokens + h.text_bytes;
}

Result<void> check_header(const SectionHeader& h, std::uint32_t vocab_size) {
  const bool sentencepiece = is_sentencepiece(h);
  if (h.model != static_cast<std::uint32_t>(TokenizerModel::byte_bpe) && !sentencepiece) {
    return errorf(ErrorCode::unsupported,
                  "tokenizer: model is %u, expected 1 (byte-level BPE) or 2 (SentencePiece BPE)",
                  h.model);
  }
  if (sentencepiece && (h.pre_tokenizer != 0 || h.n_merges != 0)) {
    return damaged(
        "tokenizer: pre-tokenizer is %u and there are %u merges, SentencePiece BPE has 0 of both",
        h.pre_tokenizer, h.n_merges);
  }
  if (!sentencepiece && (h.pre_tokenizer < static_cast<std::uint32_t>(PreTokenizer::gpt2) ||
                         h.pre_tokenizer > static_cast<std::uint32_t>(PreTokenizer::deepseek_v3))) {
    return errorf(
        ErrorCode::unsupported,
        "tokenizer: pre-tokenizer is %u, expected 1 (gpt2), 2 (smollm), 3 (qwen2), 4 (llama-bpe), "
        "5 (qwen35) or 6 (deepseek-v3)",
        h.pre_tokenizer);
  }
  const std::uint32_t flags = sentencepiece ? kSentencePieceFlags : kByteBpeFlags;
  if ((h.flags & ~flags) != 0) {
    return damaged("tokenizer: flags are 0x%x, only those in 0x%x are defined", h.flags, flags);
  }
  if (h.n_tokens != vocab_size || h.n_tokens == 0) {
    return damaged("tokenizer: %u tokens, the model has a vocabulary of %u (at least 1)",
                   h.n_tokens, vocab_size);
  }
  if (h.reserved[0] != 0 || h.reserved[1] != 0) {
    return damaged("tokenizer: reserved fields are %u and %u, expected 0", h.reserved[0],
                   h.reserved[1]);
  }
  for (const auto& [name, slots] :
       {std::pair{"string", h.string_slots}, {"merge", h.merge_slots}}) {
    if (!std::has_single_bit(slots)) {
      return damaged("tokenizer: the %s table has %u slots, expected a power of two", name, slots);
    }
  }
  for (const auto& [name, id] :
       {std::pair{"bos", h.bos}, {"eos", h.eos}, {"unknown", h.unknown}, {"padding", h.padding}}) {
    if (id != kNoToken && id >= h.n_tokens) {
      return damaged("tokenizer: %s is token %u, there are %u tokens", name, id, h.n_tokens);
    }
  }
  if ((h.flags & kFlagAddBos) != 0 && h.bos == kNoToken) {
    return damaged("tokenizer: a bos token is to be added, but there is none");
  }
  if ((h.flags & kFlagAddEos) != 0 && h.eos == kNoToken) {
    return damaged("tokenizer: an eos token is to be added, but there is none");
  }
  return {};
}

Result<void> check_limits(const SectionHeader& h) {
  if (h.n_tokens <= kMaxTokens && h.n_merges <= kMaxMerges && h.text_bytes <= kMaxTextBytes)
    return {};
  return errorf(ErrorCode::unsupported,
                "tokenizer: %u tokens of %u bytes and %u merges, at most %u of %u and %u are "
                "supported",
                h.n_tokens, h.text_bytes, h.n_merges, kMaxTokens, kMaxTextBytes, kMaxMerges);
}

Result<void> check_text(std::span<const std::uint32_t> offsets, std::uint32_t text_bytes) {
  if (offsets.front() != 0) {
    return damaged("tokenizer: token 0 starts at byte %u of the text, expected 0", offsets.front());
  }
  if (offsets.back() != text_bytes) {
    return damaged("tokenizer: the last token ends at byte %u of the text, expected %u",
                   offsets.back(), text_bytes);
  }
  bool descends = false;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) descends |= offsets[i] > offsets[i + 1];
  if (!descends) return {};
  const auto token = std::ranges::adjacent_find(offsets, std::greater{}) - offsets.begin();
  return damaged("tokenizer: token %td ends at byte %u of the text, before its start at %u", token,
                 offsets[static_cast<std::size_t>(token) + 1],
                 offsets[static_cast<std::size_t>(token)]);
}

}  // namespace

Result<std::vector<std::byte>> build_tokenizer_section(const Vocabulary& v) {
  const auto invalid = [](const char* what, std::uint64_t found, std::uint64_t expected) {
    return errorf(ErrorCode::invalid_argument,
                  "tokenizer: %" PRIu64 " %s, expected at most %" PRIu64, found, what, expected);
  };
  std::uint64_t text_bytes = 0;
  for (const std::string& token : v.tokens) text_bytes += token.size();
  if (v.tokens.size() > kMaxTokens) return invalid("tokens", v.tokens.size(), kMaxTokens);
  if (v.merges.size() > kMaxMerges) return invalid("merges", v.merges.size(), kMaxMerges);
  if (text_bytes > kMaxTextBytes) return invalid("bytes of text", text_bytes, kMaxTextBytes);
  if (v.types.size() != v.tokens.size()) {
    return errorf(ErrorCode::invalid_argument, "tokenizer: %zu token types for %zu tokens",
                  v.types.size(), v.tokens.size());
  }
  const bool sentencepiece = v.model == TokenizerModel::sentencepiece_bpe;
  if (v.scores.size() != (sentencepiece ? v.tokens.size() : 0)) {
    return errorf(
        ErrorCode::invalid_argument,
        "tokenizer: %zu scores for %zu tokens, expected one a token for SentencePiece BPE, "
        "else none",
        v.scores.size(), v.tokens.size());
  }

  const auto special = special_list(v);
  const auto end = end_list(v);
  SectionHeader header;
  header.model = static_cast<std::uint32_t>(v.model);
  header.pre_tokenizer = sentencepiece ? 0 : static_cast<std::uint32_t>(v.pre_tokenizer);
  header.flags = (v.add_bos ? kFlagAddBos : 0) | (v.add_eos ? kFlagAddEos : 0) |
                 (v.whole_pieces ? kFlagWholePieces : 0) | (v.nfc ? kFlagNfc : 0) |
                 (v.space_prefix ? kFlagSpacePrefix : 0);
  header.n_tokens = static_cast<std::uint32_t>(v.tokens.size());
  header.n_merges = static_cast<std::uint32_t>(v.merges.size());
  header.n_special = static_cast<std::uint32_t>(special.size());
  header.n_end = static_cast<std::uint32_t>(end.size());
  header.string_slots = static_cast<std::uint32_t>(string_slots(v));
  header.merge_slots = static_cast<std::uint32_t>(merge_slots(v));
  header.text_bytes = static_cast<std::uint32_t>(text_bytes);
  header.bos = v.bos;
  header.eos = v.eos;
  header.unknown = v.unknown;
  header.padding = v.padding;

  // Filled in place: a vocabulary at the limits, twice in memory, would be more than it may take.
  std::vector<std::byte> section(section_bytes(header));
  std::memcpy(section.data(), &header, sizeof header);
  Arrays<std::byte> arrays(std::span<std::byte>(section).subspan(sizeof header));
  const auto offsets = arrays.take<std::uint32_t>(v.tokens.size() + 1);
  for (std::size_t i = 0; i < v.tokens.size(); ++i)
    offsets[i + 1] = offsets[i] + static_cast<std::uint32_t>(v.tokens[i].size());
  arrays.put(v.merges);
  fill_string_table(v, arrays.take<std::uint32_t>(header.string_slots));
  fill_merge_table(v, arrays.take<std::uint32_t>(header.merge_slots));
  arrays.put(special);
  arrays.put(end);
  arrays.put(v.scores);
  arrays.put(v.types);
  auto text = arrays.take<char>(text_bytes);
  for (const std::string& token : v.tokens) {
    std::ranges::copy(token, text.begin());
    text = text.subspan(token.size());
  }

  // What is wrong with the vocabulary is wrong with its section.
  const auto view = TokenizerView::parse(section, header.n_tokens);
  if (!view) return Error(ErrorCode::invalid_argument, view.error().message());
  if (const auto checked = view->check(); !checked) {
    return Error(ErrorCode::invalid_argument, checked.error().message());
  }
  return section;
}

Result<TokenizerView> TokenizerView::parse(std::span<const std::byte> section,
                                           std::uint32_t vocab_size) {
  SectionHeader h;
  if (section.size() < sizeof h) {
    return damaged("tokenizer: the section has %zu bytes, its header alone %zu", section.size(),
                   sizeof h);
  }
  if (reinterpret_cast<std::uintptr_t>(section.data()) % alignof(std::uint32_t) != 0) {
    return errorf(ErrorCode::invalid_argument,
                  "tokenizer: the section lies at address %p, expected a multiple of 4",
                  static_cast<const void*>(section.data()));
  }
  std::memcpy(&h, section.data(), sizeof h);
  if (const auto checked = check_header(h, vocab_size); !checked) return checked.error();
  const std::uint64_t expected = section_bytes(h);
  if (section.size() != expected) {
    return damaged("tokenizer: the section has %zu bytes, its header promises %" PRIu64,
                   section.size(), expected);
  }

  if (const auto fits = check_limits(h); !fits) return fits.error();

  TokenizerView view;
  Arrays<const std::byte> arrays(section.subspan(sizeof h));
  view.text_offsets_ = arrays.take<std::uint32_t>(std::size_t{h.n_tokens} + 1);
  view.merges_ = arrays.take<std::uint32_t>(3 * std::size_t{h.n_merges});
  view.string_slots_ = arrays.take<std::uint32_t>(h.string_slots);
  view.merge_slots_ = arrays.take<std::uint32_t>(h.merge_slots);
  view.special_ = arrays.take<std::uint32_t>(h.n_special);
  view.end_ = arrays.take<std::uint32_t>(h.n_end);
  view.scores_ = arrays.take<float>(is_sentencepiece(h) ? h.n_tokens : 0);
  view.types_ = arrays.take<std::uint8_t>(h.n_tokens);
  const auto text = arrays.take<char>(h.text_bytes);
  view.text_ = {text.data(), text.size()};
  view.model_ = static_cast<TokenizerModel>(h.model);
  if (h.pre_tokenizer != 0) view.pre_tokenizer_ = static_cast<PreTokenizer>(h.pre_tokenizer);
  view.bos_ = h.bos;
  view.eos_ = h.eos;
  view.unknown_ = h.unknown;
  view.padding_ = h.padding;
  view.add_bos_ = (h.flags & kFlagAddBos) != 0;
  view.add_eos_ = (h.flags & kFlagAddEos) != 0;
  view.whole_pieces_ = (h.flags & kFlagWholePieces) != 0;
  view.nfc_ = (h.flags & kFlagNfc) != 0;
  view.space_prefix_ = (h.flags & kFlagSpacePrefix) != 0;

  if (const auto checked = check_text(view.text_offsets_, h.text_bytes); !checked) {
    return checked.error();
  }
  if (const auto* const id = find_outside(view.merges_, h.n_tokens, false)) {
    return damaged("tokenizer: merge %td holds token %u, there are %u tokens",
                   (id - view.merges_.data()) / 3, *id, h.n_tokens);
  }
  if (const auto* const id = find_outside(view.string_slots_, h.n_tokens, true)) {
    return damaged("tokenizer: slot %td of the string table holds token %u, there are %u tokens",
                   id - view.string_slots_.data(), *id, h.n_tokens);
  }
  if (const auto* const rank = find_outside(view.merge_slots_, h.n_merges, true)) {
    return damaged("tokenizer: slot %td of the merge table holds merge %u, there are %u merges",
                   rank - view.merge_slots_.data(), *rank, h.n_merges);
  }
  if (const auto checked = view.check_special(); !checked) return checked.error();
  return view;
}

// Types, and the two lists that follow from them.
Result<void> TokenizerView::check_special() const {
  std::size_t n_special = 0;
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (types_[id] > static_cast<std::uint8_t>(TokenType::byte)) {
      return damaged("tokenizer: token %u has type %u, expected 0 to 6", id, types_[id]);
    }
    n_special += is_special(type(id)) && !token(id).empty();
  }
  if (special_.size() != n_special) {
    return damaged("tokenizer: the special list has %zu tokens, %zu are special by type",
                   special_.size(), n_special);
  }
  for (std::size_t i = 0; i < special_.size(); ++i) {
    const std::uint32_t id = special_[i];
    if (id >= size()) {
      return damaged("tokenizer: the special list holds token %u, there are %u tokens", id, size());
    }
    if (!is_special(type(id)) || token(id).empty()) {
      return damaged("tokenizer: the special list holds token %u, which is not special", id);
    }
    if (token(id).size() > kMaxSpecialBytes) {
      return damaged("tokenizer: special token %u '%s' has %zu bytes, expected at most %u", id,
                     printable(token(id)).c_str(), token(id).size(), kMaxSpecialBytes);
    }
    if (i == 0) continue;
    const std::uint32_t before = special_[i - 1];
    const std::size_t length = token(id).size(), length_before = token(before).size();
    if (length > length_before || (length == length_before && id <= before)) {
      return damaged(
          "tokenizer: token %u follows token %u in the special list, expected the longer "
          "first, then the lower id",
          id, before);
    }
  }
  if (const auto* const id = find_outside(end_, size(), false)) {
    return damaged("tokenizer: end token is %u, there are %u tokens", *id, size());
  }
  const auto unordered = std::ranges::adjacent_find(end_, std::greater_equal{});
  if (unordered != end_.end()) {
    return damaged("tokenizer: end token %u follows %u, expected ascending ids", unordered[1],
                   unordered[0]);
  }
  if (eos_ != kNoToken && !std::ranges::binary_search(end_, eos_)) {
    return damaged("tokenizer: eos is token %u, which is not one of the end tokens", eos_);
  }
  return {};
}

Result<void> TokenizerView::check() const {
  for (std::size_t id = 0; id < scores_.size(); ++id) {
    if (!std::isfinite(scores_[id])) {
      return damaged("tokenizer: token %zu has the score %g, expected a finite number", id,
                     static_cast<double>(scores_[id]));
    }
  }
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (token(id).empty()) continue;
    const auto found = find(token(id));
    if (!found) {
      return damaged("tokenizer: token %u '%s' is not found by its bytes", id,
                     printable(token(id)).c_str());
    }
    const int wanted = precedence(type(id));
    if (*found != id && wanted <= precedence(type(*found)) && type(id) != TokenType::unused) {
      return damaged("tokenizer: token %u '%s' is not found by its bytes, token %u has them too",
                     id, printable(token(id)).c_str(), *found);
    }
  }
  for (std::uint32_t rank = 0; rank < merge_count(); ++rank) {
    const std::uint32_t* const merge = merges_.data() + 3 * std::size_t{rank};
    const std::string_view left = token(merge[0]), right = token(merge[1]);
    const std::string_view result = token(merge[2]);
    if (left.empty() || right.empty() || result.size() != left.size() + right.size() ||
        !result.starts_with(left) || !result.ends_with(right)) {
      return damaged("tokenizer: merge %u: tokens %u '%s' and %u '%s' do not make %u '%s'", rank,
                     merge[0], printable(left).c_str(), merge[1], printable(right).c_str(),
                     merge[2], printable(result).c_str());
    }
    const auto found = this->merge(merge[0], merge[1]);
    if (!found) return damaged("tokenizer: merge %u is not found by its pair", rank);
    if (found->rank != rank) {
      return damaged("tokenizer: merge %u is not found by its pair, merge %u has it too", rank,
                     found->rank);
    }
  }
  return {};
}

Vocabulary TokenizerView::vocabulary() const {
  Vocabulary v;
  v.model = model_;
  v.pre_tokenizer = pre_tokenizer_;
  for (std::uint32_t id = 0; id < size(); ++id) {
    v.tokens.emplace_back(token(id));
    v.types.push_back(type(id));
  }
  for (std::size_t i = 0; i < merges_.size(); i += 3) {
    v.merges.push_back({merges_[i], merges_[i + 1], merges_[i + 2]});
  }
  v.scores.assign(scores_.begin(), scores_.end());
  v.bos = bos_;
  v.eos = eos_;
  v.unknown = unknown_;
  v.padding = padding_;
  v.end_tokens.assign(end_.begin(), end_.end());
  v.add_bos = add_bos_;
  v.add_eos = add_eos_;
  v.nfc = nfc_;
  v.whole_pieces = whole_pieces_;
  v.space_prefix = space_prefix_;
  return v;
}

std::optional<std::uint32_t> TokenizerView::find(std::string_view bytes) const {
  if (bytes.empty()) return std::nullopt;
  const std::uint32_t* const slot = probe(string_slots_, hash(bytes), [&](std::uint32_t id) {
    return id == kEmptySlot || token(id) == bytes;
  });
  if (!slot || *slot == kEmptySlot) return std::nullopt;
  return *slot;
}

std::optional<TokenizerView::Merged> TokenizerView::merge(std::uint32_t left,
                                                          std::uint32_t right) const {
  const auto entry = [&](std::uint32_t rank) { return merges_.data() + 3 * std::size_t{rank}; };
  const std::uint32_t* const slot = probe(merge_slots_, hash(left, right), [&](std::uint32_t rank) {
    return rank == kEmptySlot || (entry(rank)[0] == left && entry(rank)[1] == right);
  });
  if (!slot || *slot == kEmptySlot) return std::nullopt;
  return Merged{*slot, entry(*slot)[2]};
}

}  // namespace tsq::format
