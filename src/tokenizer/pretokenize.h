// Cutting text into the pieces that are tokenised one by one.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "format/tokenizer_section.h"
#include "tsq/error.h"

namespace tsq {

// The split patterns of one family of tokenizers, compiled once. May be used by many threads.
class Splitter {
 public:
  // jit: machine code where this PCRE2 and the system allow it; the pieces are the same without.
  static Result<Splitter> create(format::PreTokenizer kind, bool jit = true);

  // Appends the pieces of a text, which put together give it back. Requires valid UTF-8. Takes time
  // linear in its length and stack independent of it. Errors: out_of_memory, unsupported (PCRE2
  // gave up, in its own words).
  Result<void> split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Patterns;
  struct Free {
    void operator()(Patterns* patterns) const;
  };
  explicit Splitter(Patterns* patterns) : patterns_(patterns) {}
  std::unique_ptr<Patterns, Free> patterns_;
};

}  // namespace tsq
