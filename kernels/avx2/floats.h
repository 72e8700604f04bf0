// The vector of floats that kernels/x86 is written for, in its AVX2 form: 8 lanes, 16 registers.
#pragma once

#include "kernels/avx2/simd.h"

namespace tsq::kernels {
namespace {

using Vec = __m256;
using Bits = __m256i;

inline Vec load(const float* x) { return _mm256_loadu_ps(x); }
inline void store(float* x, Vec v) { _mm256_storeu_ps(x, v); }
inline Vec load_first(const float* x, std::size_t n) {
  return _mm256_maskload_ps(x, first_lanes(n));
}
inline void store_first(float* x, std::size_t n, Vec v) {
  _mm256_maskstore_ps(x, first_lanes(n), v);
}
inline Vec broadcast(float x) { return _mm256_set1_ps(x); }
inline Vec zeros() { return _mm256_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec negate(Vec v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0F)); }
// The fixed tree of 16 lanes.
inline float reduce_lanes(const Vec (&lanes)[2]) { return reduce_lanes(lanes[0], lanes[1]); }

// The stages below kWidth of a transform of n: a lane's partner comes by a shuffle, and y = partner
// + v * (+1 or -1).
inline Vec inner(Vec v, std::size_t n) {
  if (n > 1) {
    const Vec ones = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute_ps(v, 0xB1));
  }
  if (n > 2) {
    const Vec ones = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute_ps(v, 0x4E));
  }
  if (n > 4) {
    const Vec ones = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute2f128_ps(v, v, 1));
  }
  return v;
}

// Flips the lanes from element i on whose sign bit is set; i is a multiple of 8.
inline Vec flip(Vec v, const std::uint32_t* signs, std::size_t i) {
  const auto* const byte = reinterpret_cast<const char*>(signs) + i / 8;
  // Each lane holds the byte in its upper eight bits: lane k moves bit k to the top.
  const Bits top =
      _mm256_sllv_epi32(_mm256_set1_epi8(*byte), _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  return _mm256_xor_ps(v, _mm256_and_ps(_mm256_castsi256_ps(top), _mm256_set1_ps(-0.0F)));
}

// As integers, magnitudes order like the floats; infinity and NaN are above all of them.
inline Vec max_magnitude(Vec largest, Vec v) {
  const Bits bits = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7FFFFFFF));
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(largest), bits));
}
// The largest lane of what max_magnitude() gave.
inline float reduce_max(Vec largest) {
  const Bits v = _mm256_castps_si256(largest);
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1))));
}

// 4 kWidth values, at most 127 in magnitude, rounded to int8.
inline Bits round_codes(const Vec (&v)[4]) {
  const Bits low = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
  const Bits high = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
  // The packs work within 128 bits: the dwords come out in this order.
  const Bits order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}
inline void store(std::int8_t* q, Bits codes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), codes);
}
inline Bits load(const std::int8_t* q) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
}
// sums + the codes, a pair of them to each 16-bit lane.
inline Bits add_codes(Bits sums, Bits codes) {
  return _mm256_add_epi16(sums, _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes));
}
inline std::int32_t reduce_add(Bits sums) {
  const Bits v = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}
inline Bits no_codes() { return _mm256_setzero_si256(); }

}  // namespace
}  // namespace tsq::kernels
