#include "tsq/tokenizer.h"

#include <algorithm>
#include <limits>
#include <new>
#include <variant>

#include "base/errorf.h"
#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/make.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/special.h"

namespace tsq {

using format::kNoToken;
using format::TokenType;

namespace {

// The tokens of text that holds no special token. Each part that its encode() is given is a text of
// its own.
class ByteLevelModel {
 public:
  ByteLevelModel(const format::TokenizerView& view, Splitter splitter)
      : splitter_(std::move(splitter)), bpe_(view), nfc_(view.nfc()) {}

  struct Scratch {
    std::vector<std::string_view> pieces;
    MergeList list;
  };

  Result<void> encode(std::string_view utf8, Scratch& scratch, std::vector<Token>& tokens) const {
    std::string normalised;
    if (nfc_ && may_need_nfc(utf8)) {
      normalised = to_nfc(utf8);
      utf8 = normalised;
    }
    scratch.pieces.clear();
    if (const auto done = splitter_.split(utf8, scratch.pieces); !done) return done;
    for (const std::string_view piece : scratch.pieces) bpe_.encode(piece, scratch.list, tokens);
    return {};
  }
  void encode_byte(char byte, Scratch& scratch, std::vector<Token>& tokens) const {
    bpe_.encode({&byte, 1}, scratch.list, tokens);
  }

 private:
  Splitter splitter_;
  Bpe bpe_;
  bool nfc_;
};

class SentencePieceModel {
 public:
  explicit SentencePieceModel(const format::TokenizerView& view) : bpe_(view) {}

  using Scratch = SentencePiece::Scratch;

  Result<void> encode(std::string_view utf8, Scratch& scratch, std::vector<Token>& tokens) const {
    bpe_.encode(utf8, scratch, tokens);
    return {};
  }
  void encode_byte(char byte, Scratch&, std::vector<Token>& tokens) const {
    bpe_.encode_byte(static_cast<unsigned char>(byte), tokens);
  }

 private:
  SentencePiece bpe_;
};

}  // namespace

struct Tokenizer::State {
  format::TokenizerView view;
  SpecialTokens special;
  std::variant<ByteLevelModel, SentencePieceModel> model;
};

namespace {

// Cuts at bytes that are not UTF-8.
template <class Model>
Result<void> encode_text(const Model& model, std::string_view text,
                         typename Model::Scratch& scratch, std::vector<Token>& tokens) {
  while (!text.empty()) {
    std::size_t valid = 0;
    while (const std::size_t length = utf8_sequence_length(text.substr(valid))) valid += length;
    if (const auto done = model.encode(text.substr(0, valid), scratch, tokens); !done) return done;
    text.remove_prefix(valid);
    if (text.empty()) break;
    model.encode_byte(text[0], scratch, tokens);
    text.remove_prefix(1);
  }
  return {};
}

std::string without(std::string_view text, std::string_view guard) {
  std::string kept;
  for (std::size_t at; (at = text.find(guard)) != text.npos;
       text.remove_prefix(at + guard.size())) {
    kept += text.substr(0, at);
  }
  return kept += text;
}

// Cuts at special tokens.
template <class Model>
Result<void> encode_with_special(const Model& model, const SpecialTokens& special,
                                 std::string_view text, const EncodeOptions& options,
                                 std::vector<Token>& tokens) {
  typename Model::Scratch scratch;
  for (std::size_t start = 0;;) {
    const auto found = special.find(text, start, options.parse_special);
    const std::size_t end = found ? found->start : text.size();
    std::string_view between = text.substr(start, end - start);
    std::string kept;
    if (!options.guard.empty() && between.find(options.guard) != between.npos) {
      between = kept = without(between, options.guard);
    }
    const auto done = encode_text(model, between, scratch, tokens);
    if (!done || !found) return done;
    tokens.push_back(static_cast<Token>(found->id));
    start = found->start + found->length;
  }
}

// A space stands before the text and, as in llama.cpp, before what follows a control token.
std::string with_space_prefix(const format::TokenizerView& view, const SpecialTokens& special,
                              std::string_view text, bool control) {
  std::string prefixed;
  std::size_t begin = 0;  // of what is a text of its own
  for (std::size_t start = 0; begin < text.size();) {
    const auto found = special.find(text, start, control);
    const std::size_t end = found ? found->start : text.size();
    start = found ? end + found->length : end;
    if (found && view.type(found->id) != TokenType::control) continue;
    if (begin != end) prefixed += ' ';
    prefixed += text.substr(begin, start - begin);
    begin = start;
  }
  return prefixed;
}

std::optional<Token> optional_token(std::uint32_t id) {
  if (id == kNoToken) return std::nullopt;
  return static_cast<Token>(id);
}

}  // namespace

Result<Tokenizer> make_tokenizer(const format::TokenizerView& view) try {
  if (view.model() == format::TokenizerModel::sentencepiece_bpe) {
    return Tokenizer(std::make_unique<const Tokenizer::State>(
        Tokenizer::State{view, SpecialTokens(view), SentencePieceModel(view)}));
  }
  auto splitter = Splitter::create(view.pre_tokenizer());
  if (!splitter) return splitter.error();
  return Tokenizer(std::make_unique<const Tokenizer::State>(
      Tokenizer::State{view, SpecialTokens(view), ByteLevelModel(view, std::move(*splitter))}));
} catch (const std::bad_alloc&) {
  return Error(ErrorCode::out_of_memory, "no memory to open the tokenizer");
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<std::vector<Token>> Tokenizer::encode(std::string_view text,
                                             const EncodeOptions& options) const try {
  const State& s = *state_;
  if (text.size() >= std::numeric_limits<std::uint32_t>::max()) {
    return errorf(ErrorCode::invalid_argument,
                  "the text has %zu bytes, expected less than 2^32 - 1", text.size());
  }
  std::string normalised;
  if (s.view.model() == format::TokenizerModel::sentencepiece_bpe) {
    normalised = replace_space_marks(text);
    if (s.view.space_prefix()) {
      normalised = with_space_prefix(s.view, s.special, normalised, options.parse_special);
    }
    text = normalised;
  }
  std::vector<Token> tokens;
  if (options.add_special && s.view.add_bos()) tokens.push_back(static_cast<Token>(s.view.bos()));
  const auto done = std::visit(
      [&](const auto& model) {
        return encode_with_special(model, s.special, text, options, tokens);
      },
      s.model);
  if (!done) return done.error();
  if (options.add_special && s.view.add_eos()) tokens.push_back(static_cast<Token>(s.view.eos()));
  return tokens;
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "no memory to tokenise %zu bytes", text.size());
}

std::string Tokenizer::decode(std::span<const Token> tokens, const DecodeOptions& options) const {
  std::string text;
  bool strip = options.strip_space_prefix && state_->view.space_prefix();
  for (const Token token : tokens) {
    std::string_view piece = bytes(token);
    if (is_control(token)) {
      if (options.skip_control) continue;
    } else {
      if (strip && piece.starts_with(' ')) piece.remove_prefix(1);
      strip = false;
    }
    text += piece;
  }
  return text;
}

std::string_view Tokenizer::bytes(Token token) const {
  const auto id = static_cast<std::uint32_t>(token);
  return id < state_->view.size() ? state_->view.token(id) : std::string_view();
}

std::optional<Token> Tokenizer::find(std::string_view bytes) const {
  const auto id = state_->view.find(bytes);
  return id ? optional_token(*id) : std::nullopt;
}

std::int32_t Tokenizer::vocab_size() const {
  return static_cast<std::int32_t>(state_->view.size());
}
std::optional<Token> Tokenizer::bos() const { return optional_token(state_->view.bos()); }
std::optional<Token> Tokenizer::eos() const { return optional_token(state_->view.eos()); }
bool Tokenizer::adds_bos() const { return state_->view.add_bos(); }
bool Tokenizer::is_end(Token token) const {
  return std::ranges::binary_search(end_tokens(), token);
}
std::span<const Token> Tokenizer::end_tokens() const {
  const auto ids = state_->view.end_tokens();  // below 2^31: the same numbers when signed
  return {reinterpret_cast<const Token*>(ids.data()), ids.size()};
}
bool Tokenizer::is_control(Token token) const {
  const auto id = static_cast<std::uint32_t>(token);
  return id < state_->view.size() && state_->view.type(id) == TokenType::control;
}

}  // namespace tsq
