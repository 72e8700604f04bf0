// Text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tsq/error.h"
#include "tsq/export.h"

namespace tsq::format {
class TokenizerView;
}

namespace tsq {

// An id of the vocabulary, from 0.
using Token = std::int32_t;

struct EncodeOptions {
  bool add_special = true;     // the tokens that the model wants around a text: BOS, EOS
  bool parse_special = false;  // control tokens written out in the text become that token
  // If not empty: is taken out of the text once special tokens have been looked for. Put into the
  // middle of "<|end|>" it keeps that a text, where others of the same text are meant as tokens.
  std::string_view guard = {};
};

struct DecodeOptions {
  bool skip_control = false;        // control tokens give no text
  bool strip_space_prefix = false;  // without the space that encode() put before the text, if any
};

// The vocabulary of a model. It reads the model's file in place: valid as long as the Model that
// it came from. Move-only, read-only, may be used by many threads.
class TSQ_API Tokenizer {
 public:
  // The tokens of any bytes; UTF-8 is expected, not required: a byte outside it becomes the token
  // of that byte, so that decode() gives every text back. A vocabulary may lack a byte (SmolLM2's
  // lacks 21, none of them printable): it becomes the unknown token or, where there is none or that
  // is a control token, it is left out, as Hugging Face's tokenizers do. Some models (qwen2,
  // qwen35) want the text in Unicode's form C: it is brought into it first, and decode() gives that
  // back. Llama 2's and its kin want a space before it, and take U+2581 for a space. Time grows
  // with the length of the text. Errors: invalid_argument for a text of 4 GiB or more, less a byte;
  // out_of_memory.
  Result<std::vector<Token>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The bytes of the tokens, one after another: UTF-8 if the tokens came from it and none is
  // missing. An id that does not exist gives nothing.
  std::string decode(std::span<const Token> tokens, const DecodeOptions& options = {}) const;

  // What one token stands for, as raw bytes: it may be a part of a UTF-8 character. Empty for an id
  // that does not exist. A view of the model's file.
  std::string_view bytes(Token token) const;

  // The token with exactly these bytes.
  std::optional<Token> find(std::string_view bytes) const;

  std::int32_t vocab_size() const;
  std::optional<Token> bos() const;  // begins a text
  std::optional<Token> eos() const;  // ends a text
  bool adds_bos() const;             // whether encode() puts bos() first; it is there then
  bool is_end(Token token) const;    // whether generation stops here: end of text or of turn
  std::span<const Token> end_tokens() const;  // those for which is_end() holds, ascending
  bool is_control(Token token) const;         // a mark without text of its own

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

 private:
  friend Result<Tokenizer> make_tokenizer(const format::TokenizerView& view);
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace tsq
