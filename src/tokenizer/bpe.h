// Byte-level byte-pair encoding of one piece of text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/tokenizer_section.h"
#include "tsq/tokenizer.h"

namespace tsq {

class Bpe {
 public:
  // The view's bytes are borrowed.
  explicit Bpe(const format::TokenizerView& view);

  // What encode() reuses from call to call.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      std::uint32_t token;
      std::uint32_t pair;  // what it and the next one merge to; kNoToken: nothing, or it is gone
      std::uint32_t previous, next;
    };
    struct Candidate {
      std::uint64_t order;  // rank, then position: the lowest first, the leftmost of equals
      std::uint32_t pair;
      bool operator>(const Candidate& other) const { return order > other.order; }
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // Appends the tokens of a piece shorter than 4 GiB: the token that it is where the view asks for
  // whole pieces, else what merging gives. A byte without a token becomes the unknown
  // token; it is left out where there is none or that is a control token. Time n log n.
  void encode(std::string_view piece, Scratch& scratch, std::vector<Token>& tokens) const;

 private:
  // Looks up the pair that starts at position and, if it merges, puts it behind the heap.
  bool add_candidate(Scratch& scratch, std::uint32_t position) const;

  format::TokenizerView view_;
  std::array<std::uint32_t, 256> byte_tokens_;
};

}  // namespace tsq
