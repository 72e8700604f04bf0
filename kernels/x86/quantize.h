// Activations to int8, and the rotation before it, for any vector of floats.
//
// Overflow: a 16-bit lane adds up at most 8 codes of 127.
#pragma once

#include "kernels/x86/fwht.h"

namespace tsq::kernels {
namespace {

inline bool is_finite(float max) { return max < __builtin_inff(); }

// Of whole groups.
inline float largest_magnitude(const float* x, std::size_t n) {
  Vec largest[2] = {zeros(), zeros()};
  for (std::size_t i = 0; i < n; i += 2 * kWidth) {
    largest[0] = max_magnitude(largest[0], load(x + i));
    largest[1] = max_magnitude(largest[1], load(x + i + kWidth));
  }
  return reduce_max(max_magnitude(largest[0], largest[1]));
}

// q = x * factor, rounded, of 64 values; sums + their codes.
inline Bits round_half(const float* x, Vec factor, std::int8_t* q, Bits sums) {
  unroll<kGroup / 2 / (4 * kWidth)>([&](auto part) {
    constexpr std::size_t kAt = part.value * 4 * kWidth;
    Vec v[4];
    unroll<4>([&](auto k) { v[k.value] = mul(load(x + kAt + k.value * kWidth), factor); });
    const Bits codes = round_codes(v);
    store(q + kAt, codes);
    sums = add_codes(sums, codes);
  });
  return sums;
}

// Group g, whose first element is at x.
inline void round_group(const float* x, float factor, std::size_t g, const Q8Column& out) {
  constexpr std::size_t kHalf = kGroup / 2;
  std::int8_t* const q = out.q + g * kGroup;
  const Vec f = broadcast(factor);
  const Bits half = round_half(x, f, q, no_codes());
  if (out.half_sum != nullptr) out.half_sum[g] = reduce_add(half);
  out.sum[g] = reduce_add(round_half(x + kHalf, f, q + kHalf, half));
}

inline bool quantize_groups(const float* x, std::size_t count, const Q8Column& out) {
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    const float max = largest_magnitude(x + g * kGroup, kGroup);
    if (!is_finite(max)) return false;
    const bool zero = max < 1e-30F;
    round_group(x + g * kGroup, zero ? 0.0F : 127.0F / max, g, out);
    out.scale[g] = zero ? 0.0F : max / 127.0F;
  }
  return true;
}

inline bool quantize_token(const float* x, std::size_t count, const Q8Column& out) {
  const float max = largest_magnitude(x, count);
  if (!is_finite(max)) return false;
  const float s = 127.0F / (max < 1e-5F ? 1e-5F : max);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    round_group(x + g * kGroup, s, g, out);
    out.scale[g] = 1.0F / s;
  }
  *out.token_scale = s;
  return true;
}

inline bool quantize_column(const float* x, std::size_t count, const Q8Column& out) {
  return out.token_scale != nullptr ? quantize_token(x, count, out)
                                    : quantize_groups(x, count, out);
}

inline bool rotate_quantize_column(const float* x, const std::uint32_t* signs, std::size_t count,
                                   std::size_t block, float* y, std::size_t padded,
                                   const Q8Column& out) {
  rotate_runs(x, signs, count, block, y, Scaled{norm(block)});
  for (std::size_t i = count; i < padded; ++i) y[i] = 0;
  return quantize_column(y, padded, out);
}

}  // namespace
}  // namespace tsq::kernels
