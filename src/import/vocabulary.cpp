#include "import/vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cmath>

#include "base/errorf.h"
#include "base/hash.h"
#include "import/index_table.h"
#include "import/keys.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/sentencepiece.h"

namespace tsq::importer {
namespace {

using format::kNoToken;
using format::PreTokenizer;
using format::TokenType;
using format::Vocabulary;

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kCharacterMap[] = "tokenizer.ggml.precompiled_charsmap";
constexpr char kRemoveSpaces[] = "tokenizer.ggml.remove_extra_whitespaces";
constexpr char kSentencePiece[] = "llama";  // value of kModel

// What a value of tokenizer.ggml.pre stands for.
struct Pre {
  const char* name;
  PreTokenizer kind;
  bool adds_bos = false;  // where the file does not say
  bool whole_pieces = false;
  bool nfc = false;
};
constexpr Pre kPres[] = {
    {"gpt-2", PreTokenizer::gpt2},
    {"gpt2", PreTokenizer::gpt2},
    {"smollm", PreTokenizer::smollm},
    {"qwen2", PreTokenizer::qwen2, false, false, true},
    {"qwen35", PreTokenizer::qwen35, false, false, true},
    {"hunyuan", PreTokenizer::qwen2},
    {"hunyuan-dense", PreTokenizer::deepseek_v3},
    {"deepseek-v3", PreTokenizer::deepseek_v3},
    {"joyai-llm", PreTokenizer::deepseek_v3},
    {"hy_v4", PreTokenizer::deepseek_v3},
    {"llama-bpe", PreTokenizer::llama_bpe, true, true},
    {"llama3", PreTokenizer::llama_bpe, true, true},
    {"llama-v3", PreTokenizer::llama_bpe, true, true},
    {"falcon3", PreTokenizer::llama_bpe, true, true},
    {"falcon_e", PreTokenizer::llama_bpe, true, true},  // Falcon Edge, of ternary weights
};

const Pre* find_pre(std::string_view name) {
  const auto* const pre = std::ranges::find(kPres, name, &Pre::name);
  return pre == std::end(kPres) ? nullptr : pre;
}

std::string pre_names() {
  std::string names;
  for (const Pre& pre : kPres) names += std::string(pre.name) + ' ';
  return names;
}

Result<bool> read_flag(const Metadata& metadata, const char* key, bool absent) {
  const Value* value = metadata.find(key);
  if (!value) return absent;
  const auto flag = value->as_bool();
  if (!flag) return wrong_type(key, *value, "a boolean");
  return *flag;
}

// Text that SentencePiece would change more than by its space prefix is left to other engines.
Result<std::string> why_sentencepiece_unsupported(const Metadata& metadata) {
  if (metadata.find(kPre)) {
    const auto pre = metadata.require_string(kPre);
    if (!pre) return pre.error();
    if (*pre != "default") {
      return stringf("pre-tokenizer '%s' of a SentencePiece model is not supported, default is",
                     printable(*pre).c_str());
    }
  }
  if (metadata.find(kCharacterMap)) {
    return stringf("key '%s' is there: a character map is not supported", kCharacterMap);
  }
  const auto removes = read_flag(metadata, kRemoveSpaces, false);
  if (!removes) return removes.error();
  if (*removes) return stringf("key '%s' is true, which is not supported", kRemoveSpaces);
  return std::string();
}

// Why tsq cannot run this tokenizer; empty if it can.
Result<std::string> why_unsupported(const Metadata& metadata) {
  if (!metadata.find(kModel)) return std::string("the file holds no tokenizer");
  const auto model = metadata.require_string(kModel);
  if (!model) return model.error();
  if (*model == kSentencePiece) return why_sentencepiece_unsupported(metadata);
  if (*model != "gpt2") {
    return stringf(
        "tokenizer model '%s' is not supported, gpt2 (byte-level BPE) and llama (SentencePiece "
        "BPE) are",
        printable(*model).c_str());
  }
  // The default of other engines is a split pattern of its own, not that of GPT-2.
  if (!metadata.find(kPre)) {
    return stringf("key '%s' is missing, so how text is split is unknown", kPre);
  }
  const auto pre = metadata.require_string(kPre);
  if (!pre) return pre.error();
  if (!find_pre(*pre)) {
    return stringf("pre-tokenizer '%s' is not supported, %sare", printable(*pre).c_str(),
                   pre_names().c_str());
  }
  return std::string();
}

// An array of strings, of which a tokenizer can have so many.
Result<const Value*> find_strings(const Metadata& metadata, const char* key, std::uint64_t most) {
  const Value* value = metadata.find(key);
  if (!value) return errorf(ErrorCode::damaged, "key '%s' is missing, the tokenizer needs it", key);
  if (value->type() != ValueType::array || value->element_type() != ValueType::string)
    return wrong_type(key, *value, "an array of strings");
  if (const auto few = check_count(key, *value, most); !few) return few.error();
  return value;
}

Result<std::vector<std::string_view>> read_tokens(const Metadata& metadata) {
  const auto value = find_strings(metadata, kTokens, format::kMaxTokens);
  if (!value) return value.error();
  if ((*value)->count() == 0)
    return errorf(ErrorCode::damaged, "key '%s' holds 0 tokens, expected at least 1", kTokens);
  std::uint64_t bytes = 0;
  (*value)->each_string([&](std::string_view text) { bytes += text.size(); });
  // In GPT-2's alphabet a byte takes up to two.
  if (bytes > 2 * std::uint64_t{format::kMaxTextBytes}) {
    return errorf(ErrorCode::unsupported,
                  "key '%s' holds %" PRIu64 " bytes of text, at most %" PRIu64 " are supported",
                  kTokens, bytes, 2 * std::uint64_t{format::kMaxTextBytes});
  }
  return *(*value)->as_strings();
}

bool is_list_of_numbers(const Value& value) {
  return value.type() == ValueType::array && value.element_type() != ValueType::string;
}

Result<std::vector<TokenType>> read_types(const Metadata& metadata, std::size_t n_tokens) {
  const Value* value = metadata.find(kTypes);
  if (!value) return std::vector<TokenType>(n_tokens, TokenType::normal);
  if (is_list_of_numbers(*value) && value->count() != n_tokens) {
    return errorf(ErrorCode::damaged, "key '%s' holds %" PRIu64 " types for %zu tokens", kTypes,
                  value->count(), n_tokens);
  }
  const auto numbers = value->as_i64s();
  if (!numbers) return wrong_type(kTypes, *value, "an array of integers");
  std::vector<TokenType> types;
  types.reserve(n_tokens);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const std::int64_t number = (*numbers)[i];
    if (number < 0 || number > 6) {
      return errorf(ErrorCode::damaged, "key '%s' holds %" PRId64 " at %zu, expected 0 to 6",
                    kTypes, number, i);
    }
    types.push_back(static_cast<TokenType>(number));
  }
  return types;
}

// Whether the token is written in GPT-2's byte alphabet, not as plain text.
bool is_encoded(TokenType type) {
  return type == TokenType::normal || type == TokenType::unused || type == TokenType::byte ||
         type == TokenType::undefined;
}

void add_tokens(Checkpoint& checkpoint, const std::vector<std::string_view>& texts,
                Vocabulary& vocabulary) {
  std::size_t outside = 0;
  vocabulary.tokens.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool encoded = is_encoded(vocabulary.types[i]);
    auto bytes = encoded ? bytes_from_gpt2_alphabet(texts[i]) : std::nullopt;
    if (encoded && !bytes) ++outside;
    vocabulary.tokens.push_back(bytes ? std::move(*bytes) : std::string(texts[i]));
  }
  if (outside == 0) return;
  checkpoint.warnings.push_back(stringf(
      "%zu tokens are not written in the byte alphabet and are taken as plain text", outside));
}

// The tokens by their text in the file. Where two have the same, one that merging can make wins.
class IdsByText {
 public:
  IdsByText(const std::vector<std::string_view>& texts, const std::vector<TokenType>& types)
      : texts_(texts), table_(texts.size()) {
    for (const bool encoded : {true, false}) {
      for (std::uint32_t i = 0; i < texts.size(); ++i) {
        std::uint32_t& id = slot(texts[i]);
        if (id == kNoToken && is_encoded(types[i]) == encoded) id = i;
      }
    }
  }
  // kNoToken: none.
  std::uint32_t find(std::string_view text) { return slot(text); }

 private:
  std::uint32_t& slot(std::string_view text) {
    return table_.find(xxh3(std::as_bytes(std::span(text))),
                       [&](std::uint32_t id) { return texts_[id] == text; });
  }
  const std::vector<std::string_view>& texts_;
  IndexTable table_;
};

// "left right", split at the first space that has something before it. Nothing where the three
// tokens do not exist, or do not stand for the same bytes.
std::optional<Vocabulary::Merge> read_merge(std::string_view line, IdsByText& ids,
                                            const Vocabulary& vocabulary) {
  const std::size_t space = line.find(' ', 1);
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
  Vocabulary::Merge merge = {ids.find(left), ids.find(right), kNoToken};
  if (merge.left == kNoToken || merge.right == kNoToken) return std::nullopt;
  merge.result = ids.find(std::string(left).append(right));
  if (merge.result == kNoToken) return std::nullopt;
  const auto& bytes = vocabulary.tokens;
  if (bytes[merge.left] + bytes[merge.right] != bytes[merge.result]) return std::nullopt;
  return merge;
}

void add_merges(Checkpoint& checkpoint, const Value& lines, IdsByText ids, Vocabulary& vocabulary) {
  auto& merges = vocabulary.merges;
  IndexTable pairs(lines.count());
  merges.reserve(lines.count());
  lines.each_string([&](std::string_view line) {
    const auto merge = read_merge(line, ids, vocabulary);
    if (!merge) {
      ++checkpoint.dropped_merges;
      return;
    }
    const std::uint32_t pair[2] = {merge->left, merge->right};
    std::uint32_t& rank = pairs.find(xxh3(std::as_bytes(std::span(pair))), [&](std::uint32_t i) {
      return merges[i].left == merge->left && merges[i].right == merge->right;
    });
    if (rank != kNoToken) {
      ++checkpoint.dropped_merges;
      return;
    }
    rank = static_cast<std::uint32_t>(merges.size());
    merges.push_back(*merge);
  });
}

// The byte that `<0x41>` stands for.
std::optional<char> read_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

// Empty, or why tsq cannot run it.
Result<std::string> add_sentencepiece_tokens(const std::vector<std::string_view>& texts,
                                             Vocabulary& vocabulary) {
  std::array<bool, 256> has_byte{};
  vocabulary.tokens.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TokenType type = vocabulary.types[i];
    if (type == TokenType::byte) {
      const auto byte = read_byte_token(texts[i]);
      if (!byte) {
        return errorf(ErrorCode::damaged,
                      "key '%s' holds '%.64s' at %zu for a byte, expected <0x00> to <0xFF>",
                      kTokens, printable(texts[i]).c_str(), i);
      }
      has_byte[static_cast<unsigned char>(*byte)] = true;
      vocabulary.tokens.emplace_back(1, *byte);
    } else {
      const bool plain = type == TokenType::control || type == TokenType::unknown;
      vocabulary.tokens.push_back(plain ? std::string(texts[i]) : replace_space_marks(texts[i]));
    }
  }
  const auto missing = std::ranges::find(has_byte, false);
  if (missing == has_byte.end()) return std::string();
  return stringf(
      "there is no token for the byte 0x%02X: SentencePiece without byte fallback is not "
      "supported",
      static_cast<unsigned>(missing - has_byte.begin()));
}

Result<std::vector<float>> read_scores(const Metadata& metadata, std::size_t n_tokens) {
  const Value* value = metadata.find(kScores);
  if (!value) {
    return errorf(ErrorCode::damaged, "key '%s' is missing, the tokenizer needs it", kScores);
  }
  if (is_list_of_numbers(*value) && value->count() != n_tokens) {
    return errorf(ErrorCode::damaged, "key '%s' holds %" PRIu64 " scores for %zu tokens", kScores,
                  value->count(), n_tokens);
  }
  const auto numbers = value->as_f64s();
  if (!numbers) return wrong_type(kScores, *value, "an array of numbers");
  std::vector<float> scores;
  scores.reserve(n_tokens);
  for (const double number : *numbers) {
    const auto score = static_cast<float>(number);
    if (!std::isfinite(score)) {
      return errorf(ErrorCode::damaged, "key '%s' holds %g at %zu, expected a finite number",
                    kScores, number, scores.size());
    }
    scores.push_back(score);
  }
  return scores;
}

// The id under this key: kNoToken where it is absent or all ones, which some writers mean by none.
Result<std::uint32_t> read_id(const Metadata& metadata, const char* key, std::size_t n_tokens) {
  const Value* value = metadata.find(key);
  if (!value) return kNoToken;
  const auto id = value->as_i64();
  if (!id) return wrong_type(key, *value, "a token id");
  if (*id == -1 || *id == kNoToken) return kNoToken;
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= n_tokens) {
    return errorf(ErrorCode::damaged, "key '%s' is %" PRId64 ", there are %zu tokens", key, *id,
                  n_tokens);
  }
  return static_cast<std::uint32_t>(*id);
}

Result<void> add_special_tokens(Checkpoint& checkpoint, Vocabulary& vocabulary, bool adds_bos) {
  const Metadata& metadata = checkpoint.metadata;
  const std::size_t n = vocabulary.tokens.size();
  std::uint32_t end_of_turn = kNoToken, end_of_message = kNoToken;
  const struct {
    const char* key;
    std::uint32_t* id;
  } kIds[] = {
      {"tokenizer.ggml.bos_token_id", &vocabulary.bos},
      {"tokenizer.ggml.eos_token_id", &vocabulary.eos},
      {"tokenizer.ggml.unknown_token_id", &vocabulary.unknown},
      {"tokenizer.ggml.padding_token_id", &vocabulary.padding},
      {"tokenizer.ggml.eot_token_id", &end_of_turn},
      {"tokenizer.ggml.eom_token_id", &end_of_message},
  };
  for (const auto& [key, target] : kIds) {
    const auto id = read_id(metadata, key, n);
    if (!id) return id.error();
    *target = *id;
  }
  auto& ends = vocabulary.end_tokens;
  for (const std::uint32_t id : {vocabulary.eos, end_of_turn, end_of_message}) {
    if (id != kNoToken) ends.push_back(id);
  }
  // Ends of a turn that files often leave out of their keys, and what ends a file to complete,
  // which some of them call user-defined.
  constexpr std::string_view kEnds[] = {"<|im_end|>",  "<|endoftext|>", "<|eot_id|>",
                                        "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"};
  for (const std::string_view text : kEnds) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const bool special = vocabulary.types[i] == TokenType::control ||
                           vocabulary.types[i] == TokenType::user_defined;
      if (special && vocabulary.tokens[i] == text) ends.push_back(i);
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());

  const auto add_bos =
      read_flag(metadata, "tokenizer.ggml.add_bos_token", adds_bos && vocabulary.bos != kNoToken);
  if (!add_bos) return add_bos.error();
  const auto add_eos = read_flag(metadata, "tokenizer.ggml.add_eos_token", false);
  if (!add_eos) return add_eos.error();
  if (*add_bos && vocabulary.bos == kNoToken) {
    checkpoint.warnings.push_back(
        "the tokenizer asks for a BOS token and names none: none is added");
  }
  if (*add_eos && vocabulary.eos == kNoToken) {
    checkpoint.warnings.push_back(
        "the tokenizer asks for an EOS token and names none: none is added");
  }
  vocabulary.add_bos = *add_bos && vocabulary.bos != kNoToken;
  vocabulary.add_eos = *add_eos && vocabulary.eos != kNoToken;
  return {};
}

}  // namespace

Result<void> read_vocabulary(Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata;
  const auto reason = why_unsupported(metadata);
  if (!reason) return reason.error();
  checkpoint.no_vocabulary = *reason;
  if (!reason->empty()) return {};

  const auto texts = read_tokens(metadata);
  if (!texts) return texts.error();
  auto types = read_types(metadata, texts->size());
  if (!types) return types.error();
  Vocabulary vocabulary;
  vocabulary.types = std::move(*types);
  bool adds_bos = true;  // SentencePiece, where the file does not say
  if (*metadata.find(kModel)->as_string() == kSentencePiece) {
    vocabulary.model = format::TokenizerModel::sentencepiece_bpe;
    auto scores = read_scores(metadata, texts->size());
    if (!scores) return scores.error();
    vocabulary.scores = std::move(*scores);
    const auto space_prefix = read_flag(metadata, "tokenizer.ggml.add_space_prefix", true);
    if (!space_prefix) return space_prefix.error();
    vocabulary.space_prefix = *space_prefix;
    auto unsupported = add_sentencepiece_tokens(*texts, vocabulary);
    if (!unsupported) return unsupported.error();
    checkpoint.no_vocabulary = std::move(*unsupported);
    if (!checkpoint.no_vocabulary.empty()) return {};
  } else {
    const auto lines = find_strings(metadata, kMerges, format::kMaxMerges);
    if (!lines) return lines.error();
    const Pre& pre = *find_pre(*metadata.find(kPre)->as_string());
    vocabulary.pre_tokenizer = pre.kind;
    vocabulary.whole_pieces = pre.whole_pieces;
    vocabulary.nfc = pre.nfc;
    adds_bos = pre.adds_bos;
    add_tokens(checkpoint, *texts, vocabulary);
    add_merges(checkpoint, **lines, IdsByText(*texts, vocabulary.types), vocabulary);
  }
  if (const auto special = add_special_tokens(checkpoint, vocabulary, adds_bos); !special) {
    return special.error();
  }
  checkpoint.vocabulary = std::move(vocabulary);
  return {};
}

}  // namespace tsq::importer
