// Byte-pair encoding as SentencePiece does it: two neighbours merge where their text is a token,
// that of the highest score first, and a character that ends up as no token becomes its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/tokenizer_section.h"
#include "tokenizer/merge_list.h"
#include "tsq/tokenizer.h"

namespace tsq {

class SentencePiece {
 public:
  // The view's bytes are borrowed.
  explicit SentencePiece(const format::TokenizerView& view);

  // What encode() reuses from call to call.
  class Scratch {
    friend class SentencePiece;
    MergeList list;
    std::vector<std::uint32_t> starts;  // of the symbols, and the end of the text
    // Unused tokens that could be made, and how many bytes of them the left symbol had.
    std::unordered_map<std::uint32_t, std::size_t> unused;
    std::vector<std::string_view> parts;
  };

  // Appends the tokens of valid UTF-8, shorter than 4 GiB. Time n log n.
  void encode(std::string_view text, Scratch& scratch, std::vector<Token>& tokens) const;
  // The token of a byte outside UTF-8, if there is one.
  void encode_byte(unsigned char byte, std::vector<Token>& tokens) const;

 private:
  std::optional<std::uint32_t> piece(std::string_view text) const;
  void append(std::string_view symbol, Scratch& scratch, std::vector<Token>& tokens) const;

  format::TokenizerView view_;
  std::array<std::uint32_t, 256> byte_tokens_;
};

// U+2581 in the text is a space: SentencePiece writes spaces so and cannot tell the two apart.
std::string replace_space_marks(std::string_view text);

}  // namespace tsq
