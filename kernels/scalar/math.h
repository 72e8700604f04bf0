// The scalar functions that the reference kernels share.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/exp_constants.h"
#include "kernels/kernels.h"

namespace tsq::kernels::scalar {

inline float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000U} << 16;
  const std::uint32_t exponent = h >> 10 & 31U;
  const std::uint32_t fraction = h & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 31) {  // a NaN comes out quiet, as from the hardware's conversion
    const std::uint32_t quiet = fraction == 0 ? 0 : 0x400000U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | fraction << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

inline std::uint16_t f32_to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | (magnitude >> 13 & 0x3FFU);
  } else if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // subnormal: adding 0.5 rounds to a multiple of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    half = (magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// exp_constants.h says how.
inline float exp_f32(float x) {
  if (std::isnan(x)) return x;
  if (x < kExpMin) return 0.0F;
  if (x > kExpMax) return std::numeric_limits<float>::infinity();
  const float t = std::fma(x, kLog2E, kRound);
  const float n = t - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = std::fma(kExpC6, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                              (std::bit_cast<std::uint32_t>(t) << 23));
}

// softplus(x) = ln(1 + exp(x)) = max(x, 0) + log1p(u), u = exp(-|x|) in [0, 1]; log1p(u) = 2
// atanh(s), s = u / (2 + u) in [0, 1/3], = 2 s (1 + z p(z)), z = s^2. p is the minimax fit of the
// relative error (6e-9); with the roundings it is below 4e-7 in all.
inline float softplus_f32(float x) {
  const float u = exp_f32(-std::fabs(x));
  const float s = u / (2.0F + u);
  const float z = s * s;
  float p = std::fma(0.140059933F, z, 0.140009031F);
  p = std::fma(p, z, 0.200107634F);
  p = std::fma(p, z, 0.333332092F);
  const float log1p = std::fma(2.0F * s * z, p, 2.0F * s);
  return (x > 0.0F ? x : 0.0F) + log1p;
}

// The fixed tree at the end of every 16-lane sum.
inline float reduce_lanes(const float (&lanes)[kLanes]) {
  float sums[kLanes];
  std::copy(std::begin(lanes), std::end(lanes), sums);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace tsq::kernels::scalar
