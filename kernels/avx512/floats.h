// The vector of floats that kernels/x86 is written for, in its AVX-512 form: 16 lanes, 32
// registers.
#pragma once

#include "kernels/avx512/simd.h"

namespace tsq::kernels {
namespace {

using Vec = __m512;
using Bits = __m512i;

inline Vec load(const float* x) { return _mm512_loadu_ps(x); }
inline void store(float* x, Vec v) { _mm512_storeu_ps(x, v); }
inline Vec load_first(const float* x, std::size_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), x);
}
inline void store_first(float* x, std::size_t n, Vec v) {
  _mm512_mask_storeu_ps(x, first_lanes(n), v);
}
inline Vec broadcast(float x) { return _mm512_set1_ps(x); }
inline Vec zeros() { return _mm512_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec negate(Vec v) { return _mm512_xor_ps(v, _mm512_set1_ps(-0.0F)); }
inline float reduce_lanes(const Vec (&lanes)[1]) { return reduce_lanes(lanes[0]); }

// v * (+1 in lanes whose bit h is clear, -1 else) + the partner's value.
template <int h>
Vec stage(Vec v) {
  constexpr std::uint16_t kUpper[] = {0, 0xAAAA, 0xCCCC, 0, 0xF0F0, 0, 0, 0, 0xFF00};
  const Vec ones = _mm512_mask_blend_ps(kUpper[h], _mm512_set1_ps(1.0F), _mm512_set1_ps(-1.0F));
  Vec partner;
  if constexpr (h == 1) partner = _mm512_permute_ps(v, 0xB1);
  if constexpr (h == 2) partner = _mm512_permute_ps(v, 0x4E);
  if constexpr (h == 4) partner = _mm512_shuffle_f32x4(v, v, 0xB1);
  if constexpr (h == 8) partner = _mm512_shuffle_f32x4(v, v, 0x4E);
  return _mm512_fmadd_ps(v, ones, partner);
}

// The stages below kWidth of a transform of n.
inline Vec inner(Vec v, std::size_t n) {
  if (n > 1) v = stage<1>(v);
  if (n > 2) v = stage<2>(v);
  if (n > 4) v = stage<4>(v);
  if (n > 8) v = stage<8>(v);
  return v;
}

// Flips the lanes from element i on whose sign bit is set; i is a multiple of 16.
inline Vec flip(Vec v, const std::uint32_t* signs, std::size_t i) {
  const auto bits = static_cast<__mmask16>(signs[i / 32] >> (i % 32));
  return _mm512_mask_xor_ps(v, bits, v, _mm512_set1_ps(-0.0F));
}

// As integers, magnitudes order like the floats; infinity and NaN are above all of them.
inline Vec max_magnitude(Vec largest, Vec v) {
  const Bits bits = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7FFFFFFF));
  return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(largest), bits));
}
// The largest lane of what max_magnitude() gave.
inline float reduce_max(Vec largest) {
  const std::int32_t bits = _mm512_reduce_max_epi32(_mm512_castps_si512(largest));
  float max;
  __builtin_memcpy(&max, &bits, sizeof max);
  return max;
}

// 4 kWidth values, at most 127 in magnitude, rounded to int8.
inline Bits round_codes(const Vec (&v)[4]) {
  const Bits low = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
  const Bits high = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  // The packs work within 128 bits: the dwords come out in this order.
  const Bits order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
}
inline void store(std::int8_t* q, Bits codes) { _mm512_storeu_si512(q, codes); }
inline Bits load(const std::int8_t* q) { return _mm512_loadu_si512(q); }
// sums + the codes, a pair of them to each 16-bit lane.
inline Bits add_codes(Bits sums, Bits codes) {
  return _mm512_add_epi16(sums, _mm512_maddubs_epi16(_mm512_set1_epi8(1), codes));
}
inline std::int32_t reduce_add(Bits sums) {
  return _mm512_reduce_add_epi32(_mm512_madd_epi16(sums, _mm512_set1_epi16(1)));
}
inline Bits no_codes() { return _mm512_setzero_si512(); }

}  // namespace
}  // namespace tsq::kernels
