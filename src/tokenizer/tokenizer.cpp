#include "tsq/tokenizer.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/errorf.h"
#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/make.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/special.h"

namespace tsq {

using format::kNoToken;
using format::TokenType;

struct Tokenizer::State {
  format::TokenizerView view;
  Splitter splitter;
  SpecialTokens special;
  Bpe bpe;
};

namespace {

// One call of encode(): a text is cut at special tokens, what lies between at bytes that are not
// UTF-8, what lies between those is normalised and cut by the split pattern. Each part is a text of
// its own to the next step.
class Encoder {
 public:
  Encoder(const Splitter& splitter, const Bpe& bpe, bool nfc, std::vector<Token>& tokens)
      : splitter_(splitter), bpe_(bpe), nfc_(nfc), tokens_(tokens) {}

  Result<void> encode(std::string_view text) {
    while (!text.empty()) {
      std::size_t valid = 0;
      while (const std::size_t length = utf8_sequence_length(text.substr(valid))) valid += length;
      if (const auto done = encode_utf8(text.substr(0, valid)); !done) return done;
      text.remove_prefix(valid);
      if (text.empty()) break;
      bpe_.encode(text.substr(0, 1), scratch_, tokens_);
      text.remove_prefix(1);
    }
    return {};
  }

 private:
  Result<void> encode_utf8(std::string_view text) {
    std::string normalised;
    if (nfc_ && may_need_nfc(text)) {
      normalised = to_nfc(text);
      text = normalised;
    }
    pieces_.clear();
    if (const auto done = splitter_.split(text, pieces_); !done) return done;
    for (const std::string_view piece : pieces_) bpe_.encode(piece, scratch_, tokens_);
    return {};
  }

  const Splitter& splitter_;
  const Bpe& bpe_;
  bool nfc_;
  std::vector<Token>& tokens_;
  std::vector<std::string_view> pieces_;
  Bpe::Scratch scratch_;
};

std::optional<Token> optional_token(std::uint32_t id) {
  if (id == kNoToken) return std::nullopt;
  return static_cast<Token>(id);
}

}  // namespace

Result<Tokenizer> make_tokenizer(const format::TokenizerView& view) try {
  auto splitter = Splitter::create(view.pre_tokenizer());
  if (!splitter) return splitter.error();
  return Tokenizer(std::make_unique<const Tokenizer::State>(
      Tokenizer::State{view, std::move(*splitter), SpecialTokens(view), Bpe(view)}));
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
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    return errorf(ErrorCode::invalid_argument, "the text has %zu bytes, expected less than 2^32",
                  text.size());
  }
  std::vector<Token> tokens;
  if (options.add_special && s.view.add_bos()) tokens.push_back(static_cast<Token>(s.view.bos()));
  Encoder encoder(s.splitter, s.bpe, s.view.nfc(), tokens);
  std::size_t start = 0;
  for (;;) {
    const auto special = s.special.find(text, start, options.parse_special);
    const std::size_t end = special ? special->start : text.size();
    if (const auto done = encoder.encode(text.substr(start, end - start)); !done) {
      return done.error();
    }
    if (!special) break;
    tokens.push_back(static_cast<Token>(special->id));
    start = special->start + special->length;
  }
  if (options.add_special && s.view.add_eos()) tokens.push_back(static_cast<Token>(s.view.eos()));
  return tokens;
} catch (const std::bad_alloc&) {
  return errorf(ErrorCode::out_of_memory, "no memory to tokenise %zu bytes", text.size());
}

std::string Tokenizer::decode(std::span<const Token> tokens, const DecodeOptions& options) const {
  std::string text;
  for (const Token token : tokens) {
    if (options.skip_control && is_control(token)) continue;
    text += bytes(token);
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
