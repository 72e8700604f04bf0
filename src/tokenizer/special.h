// Finding special tokens that are written out in a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/tokenizer_section.h"

namespace tsq {

class SpecialTokens {
 public:
  // The view's bytes are borrowed.
  explicit SpecialTokens(const format::TokenizerView& view);

  struct Match {
    std::size_t start, length;
    std::uint32_t id;
  };
  // The leftmost token in text at or after start, the longest of those that start there.
  // User-defined tokens always count, control tokens only if asked for.
  std::optional<Match> find(std::string_view text, std::size_t start, bool control) const;

 private:
  std::optional<std::uint32_t> longest_at_start(std::string_view text, bool control) const;

  format::TokenizerView view_;
  std::vector<std::uint32_t> sorted_;          // by their bytes
  std::array<std::uint32_t, 257> first_byte_;  // of sorted_: where tokens with this byte begin
};

}  // namespace tsq
