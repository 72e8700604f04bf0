// Any bytes as text, with small vocabularies of every kind: the tokens exist, they stand for the
// text, and merging gave what its definition gives. An input is a byte for the vocabulary, one for
// the options, then the text.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "format/tokenizer_section.h"
#include "input.h"
#include "tokenizer/make.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/sentencepiece.h"

namespace {

using namespace tsq;
using format::PreTokenizer;
using format::TokenType;
using format::Vocabulary;
using Tokens = std::vector<Token>;

constexpr std::size_t kDefinitionLimit = 200;  // bytes: the definition takes cubic time

constexpr const char* kWords[] = {"the",     " the",         "er",      "12",         "123",
                                  "\n\n",    "  ",           "    ",    "'s",         "\u00e9",
                                  "e\u0301", "\u65e5\u672c", " \u0e2a", "\U0001f469", "AB",
                                  "ab",      "\r\n",         "!!",      "\u2581a"};

template <class T>
T value_of(Result<T> result) {
  if (!result) std::abort();
  return *std::move(result);
}

std::uint32_t add(Vocabulary& v, std::string_view text, TokenType type) {
  for (std::uint32_t id = 0; id < v.tokens.size(); ++id)
    if (v.tokens[id] == text) return id;
  v.tokens.emplace_back(text);
  v.types.push_back(type);
  return static_cast<std::uint32_t>(v.tokens.size() - 1);
}

// The bytes, the words with each of their beginnings, and special tokens.
Vocabulary words(format::TokenizerModel model) {
  const bool sentencepiece = model == format::TokenizerModel::sentencepiece_bpe;
  Vocabulary v;
  v.model = model;
  for (int byte = 0; byte < 256; ++byte)
    add(v, {reinterpret_cast<const char*>(&byte), 1},
        sentencepiece ? TokenType::byte : TokenType::normal);
  for (const std::string_view word : kWords) {
    const std::string text = sentencepiece ? replace_space_marks(word) : std::string(word);
    for (std::size_t n = 2; n <= text.size(); ++n) {
      if (sentencepiece && !utf8_is_valid(text.substr(0, n))) continue;
      const auto start = add(v, text.substr(0, n), TokenType::normal);
      if (sentencepiece) continue;
      const Vocabulary::Merge merge = {add(v, text.substr(0, n - 1), TokenType::normal),
                                       static_cast<unsigned char>(text[n - 1]), start};
      const auto same = [&](const Vocabulary::Merge& m) { return m.result == merge.result; };
      if (std::none_of(v.merges.begin(), v.merges.end(), same)) v.merges.push_back(merge);
    }
  }
  v.bos = add(v, "<s>", TokenType::control);
  v.eos = add(v, "</s>", TokenType::control);
  add(v, "<u>", TokenType::user_defined);
  add(v, "<u><u>", TokenType::user_defined);
  for (std::size_t i = 0; sentencepiece && i < v.tokens.size(); ++i)
    v.scores.push_back(static_cast<float>(i * 7 % 11) - 5);  // many are equal
  return v;
}

Vocabulary byte_level(PreTokenizer pre, bool nfc = false) {
  Vocabulary v = words(format::TokenizerModel::byte_bpe);
  v.pre_tokenizer = pre;
  v.nfc = nfc;
  v.whole_pieces = pre == PreTokenizer::llama_bpe;
  return v;
}

// Without some bytes, which become the unknown token.
Vocabulary incomplete() {
  Vocabulary v = byte_level(PreTokenizer::smollm);
  v.unknown = add(v, "<unk>", TokenType::unknown);
  for (const int byte : {0x04, 0xc0, 0xff}) v.tokens[static_cast<std::size_t>(byte)] += "<no byte>";
  return v;
}

Vocabulary sentencepiece(bool space_prefix, bool unused) {
  Vocabulary v = words(format::TokenizerModel::sentencepiece_bpe);
  v.space_prefix = space_prefix;
  for (std::size_t i = 256; unused && i < v.types.size(); i += 3)
    if (v.types[i] == TokenType::normal) v.types[i] = TokenType::unused;
  return v;
}

struct Opened {
  explicit Opened(const Vocabulary& v)
      : vocabulary(v),
        section(value_of(format::build_tokenizer_section(v))),
        view(value_of(
            format::TokenizerView::parse(section, static_cast<std::uint32_t>(v.tokens.size())))),
        tokenizer(value_of(make_tokenizer(view))) {
    if (!is_sentencepiece())
      interpreter.emplace(value_of(Splitter::create(v.pre_tokenizer, /*jit=*/false)));
  }
  bool is_sentencepiece() const {
    return vocabulary.model == format::TokenizerModel::sentencepiece_bpe;
  }
  bool is_complete() const { return vocabulary.unknown == format::kNoToken; }

  Vocabulary vocabulary;
  std::vector<std::byte> section;
  format::TokenizerView view;
  Tokenizer tokenizer;
  std::optional<Splitter> interpreter;
};

const std::vector<Opened>& tokenizers() {
  static const std::vector<Opened> all = [] {
    std::vector<Opened> list;
    for (const auto pre :
         {PreTokenizer::gpt2, PreTokenizer::smollm, PreTokenizer::qwen2, PreTokenizer::llama_bpe,
          PreTokenizer::qwen35, PreTokenizer::deepseek_v3})
      list.emplace_back(byte_level(pre));
    list.emplace_back(byte_level(PreTokenizer::qwen2, true));
    list.emplace_back(byte_level(PreTokenizer::qwen35, true));
    list.emplace_back(incomplete());
    list.emplace_back(sentencepiece(false, false));
    list.emplace_back(sentencepiece(true, false));
    list.emplace_back(sentencepiece(true, true));
    return list;
  }();
  return all;
}

std::uint32_t id_of(Token token) { return static_cast<std::uint32_t>(token); }

// Of all neighbours, merges the pair that `order` puts first, the leftmost of equals.
template <class Symbol, class Order, class Merge>
void merge_by_definition(std::vector<Symbol>& symbols, Order order, Merge merge) {
  for (;;) {
    std::size_t best = symbols.size();
    double best_order = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const std::optional<double> found = order(symbols[i], symbols[i + 1]);
      if (!found || *found >= best_order) continue;
      best = i;
      best_order = *found;
    }
    if (best == symbols.size()) return;
    symbols[best] = merge(symbols[best], symbols[best + 1]);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

Tokens byte_level_by_definition(const Opened& o, std::string_view text) {
  std::vector<std::string_view> pieces;
  if (!o.interpreter->split(text, pieces)) std::abort();
  Tokens tokens;
  for (const std::string_view piece : pieces) {
    const auto whole = o.view.find(piece);
    if (o.vocabulary.whole_pieces && whole && !format::is_special(o.view.type(*whole))) {
      tokens.push_back(static_cast<Token>(*whole));
      continue;
    }
    std::vector<std::uint32_t> symbols;
    for (const char& byte : piece) symbols.push_back(static_cast<unsigned char>(byte));
    merge_by_definition(
        symbols,
        [&](std::uint32_t left, std::uint32_t right) -> std::optional<double> {
          for (std::size_t rank = 0; rank < o.vocabulary.merges.size(); ++rank) {
            const auto& m = o.vocabulary.merges[rank];
            if (m.left == left && m.right == right) return static_cast<double>(rank);
          }
          return std::nullopt;
        },
        [&](std::uint32_t left, std::uint32_t right) {
          return o.view.merge(left, right).value().result;
        });
    for (const std::uint32_t id : symbols) tokens.push_back(static_cast<Token>(id));
  }
  return tokens;
}

Tokens sentencepiece_by_definition(const Opened& o, std::string_view text) {
  const auto piece = [&](std::string_view symbol) {
    const auto id = o.view.find(symbol);
    return id && o.view.type(*id) == TokenType::normal ? id : std::nullopt;
  };
  std::vector<std::string> symbols;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    symbols.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  merge_by_definition(
      symbols,
      [&](const std::string& left, const std::string& right) -> std::optional<double> {
        const auto id = piece(left + right);
        return id ? std::optional<double>(-o.vocabulary.scores[*id]) : std::nullopt;
      },
      [](const std::string& left, const std::string& right) { return left + right; });
  Tokens tokens;
  for (const std::string& symbol : symbols) {
    if (const auto id = piece(symbol)) {
      tokens.push_back(static_cast<Token>(*id));
    } else {
      for (const char byte : symbol) tokens.push_back(static_cast<unsigned char>(byte));
    }
  }
  return tokens;
}

void check_definition(const Opened& o, std::string_view text, const Tokens& tokens) {
  const bool has_special = text.find('<') != std::string_view::npos;
  if (text.size() > kDefinitionLimit || has_special || !utf8_is_valid(text)) return;
  if (!o.is_complete()) return;
  if (o.is_sentencepiece()) {
    for (const TokenType type : o.vocabulary.types)
      if (type == TokenType::unused) return;
    const bool prefixed = o.vocabulary.space_prefix && !text.empty();
    std::string whole = prefixed ? " " : "";
    whole += replace_space_marks(text);
    if (tokens != sentencepiece_by_definition(o, whole)) std::abort();
  } else {
    const std::string whole = o.vocabulary.nfc ? to_nfc(text) : std::string(text);
    if (tokens != byte_level_by_definition(o, whole)) std::abort();
  }
}

void check_round_trip(const Opened& o, std::string_view text, const Tokens& tokens,
                      bool parse_special) {
  if (!o.is_complete()) return;
  if (o.is_sentencepiece()) {
    if (parse_special && o.vocabulary.space_prefix) return;  // a space after each control token
    const auto decoded = o.tokenizer.decode(tokens, {.strip_space_prefix = true});
    if (decoded != replace_space_marks(text)) std::abort();
    return;
  }
  const std::string decoded = o.tokenizer.decode(tokens);
  if (!o.vocabulary.nfc) {
    if (decoded != text) std::abort();
    return;
  }
  const auto again =
      o.tokenizer.encode(decoded, {.add_special = false, .parse_special = parse_special});
  if (!again || *again != tokens) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const Opened& o = tokenizers()[in.byte() % tokenizers().size()];
  const bool parse_special = in.flag();
  const std::string_view text = in.rest();
  const auto tokens =
      o.tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
  if (!tokens) std::abort();
  for (const Token token : *tokens) {
    if (id_of(token) >= o.view.size() || o.view.token(id_of(token)).empty()) std::abort();
    if (!parse_special && o.tokenizer.is_control(token)) std::abort();
  }
  check_round_trip(o, text, *tokens, parse_special);
  check_definition(o, text, *tokens);
  return 0;
}
