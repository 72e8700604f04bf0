#include "tokenizer/special.h"

#include <algorithm>

namespace tsq {

using format::TokenType;

SpecialTokens::SpecialTokens(const format::TokenizerView& view)
    : view_(view), sorted_(view.special_tokens().begin(), view.special_tokens().end()) {
  std::ranges::sort(sorted_, {}, [&](std::uint32_t id) { return view_.token(id); });
  const auto first_byte = [&](std::uint32_t id) {
    return static_cast<unsigned char>(view_.token(id)[0]);
  };
  for (unsigned byte = 0; byte <= 256; ++byte) {
    first_byte_[byte] = static_cast<std::uint32_t>(
        std::ranges::lower_bound(sorted_, byte, {}, first_byte) - sorted_.begin());
  }
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, std::size_t start,
                                                        bool control) const {
  for (; start < text.size(); ++start) {
    const auto byte = static_cast<unsigned char>(text[start]);
    if (first_byte_[byte] == first_byte_[byte + 1]) continue;
    if (const auto id = longest_at_start(text.substr(start), control)) {
      return Match{start, view_.token(*id).size(), *id};
    }
  }
  return std::nullopt;
}

// Narrows the range of tokens that agree with the text, byte by byte. In a range whose tokens share
// their first `depth` bytes, one of just that length stands first.
std::optional<std::uint32_t> SpecialTokens::longest_at_start(std::string_view text,
                                                             bool control) const {
  const auto first = static_cast<unsigned char>(text[0]);
  auto low = sorted_.begin() + first_byte_[first];
  auto high = sorted_.begin() + first_byte_[first + 1];
  std::optional<std::uint32_t> longest;
  for (std::size_t depth = 1;; ++depth) {
    for (; low != high && view_.token(*low).size() == depth; ++low) {
      if (control || view_.type(*low) == TokenType::user_defined) longest = *low;
    }
    if (low == high || depth == text.size()) return longest;
    const auto byte = static_cast<unsigned char>(text[depth]);
    const auto byte_of = [&](std::uint32_t id) {
      return static_cast<unsigned char>(view_.token(id)[depth]);
    };
    low = std::ranges::lower_bound(low, high, byte, {}, byte_of);
    high = std::ranges::upper_bound(low, high, byte, {}, byte_of);
  }
}

}  // namespace tsq
