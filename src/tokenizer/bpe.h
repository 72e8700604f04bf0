// Byte-level byte-pair encoding of one piece of text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/tokenizer_section.h"
#include "tokenizer/merge_list.h"
#include "tsq/tokenizer.h"

namespace tsq {

// The token of each byte: the unknown token for a byte that has none, kNoToken where there is no
// unknown token or it is a control token.
std::array<std::uint32_t, 256> byte_tokens(const format::TokenizerView& view);

class Bpe {
 public:
  // The view's bytes are borrowed.
  explicit Bpe(const format::TokenizerView& view);

  // Appends the tokens of a piece shorter than 4 GiB: the token that it is where the view asks for
  // whole pieces, else what merging gives. A byte without a token becomes the unknown token; it is
  // left out where there is none or that is a control token. Time n log n. list is what encode()
  // reuses from call to call.
  void encode(std::string_view piece, MergeList& list, std::vector<Token>& tokens) const;

 private:
  format::TokenizerView view_;
  std::array<std::uint32_t, 256> byte_tokens_;
};

}  // namespace tsq
