// Sizes from a file: arithmetic that says when it wraps.
#pragma once

#include <cstdint>
#include <optional>

namespace tsq {

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The smallest multiple of step (not 0) that is at least n; nothing if that wraps.
inline std::optional<std::uint64_t> checked_round_up(std::uint64_t n, std::uint64_t step) {
  const auto sum = checked_add(n, step - 1);
  if (!sum) return std::nullopt;
  return *sum / step * step;
}

// For sizes known to be sane.
constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace tsq
