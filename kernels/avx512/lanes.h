// The 16 lanes of a float sum as one vector: what kernels/x86 is written in.
#pragma once

#include "kernels/avx512/simd.h"

namespace tsq::kernels {
namespace {

struct Lanes {
  __m512 v;
};

// Sums that a tile may hold, beside what it reads, of 32 registers.
constexpr int kTileSums = 12;
// Rows by columns of a tile of decoded weights.
constexpr int kTileRows = 4, kTileColumns = 6;

inline Lanes zero_lanes() { return {_mm512_setzero_ps()}; }
inline Lanes all_lanes(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes load_lanes(const float* from) { return {_mm512_loadu_ps(from)}; }
inline void store_lanes(float* to, const Lanes& x) { _mm512_storeu_ps(to, x.v); }
inline Lanes add(const Lanes& a, const Lanes& b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes sub(const Lanes& a, const Lanes& b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes mul(const Lanes& a, const Lanes& b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes div(const Lanes& a, const Lanes& b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
// b where either is not a number.
inline Lanes max(const Lanes& a, const Lanes& b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes exp_lanes(const Lanes& x) { return {exp_f32(x.v)}; }
inline float sum_lanes(const Lanes& x) { return reduce_lanes(x.v); }

// The first two folds of the fixed tree: + 8, + 4.
inline __m128 fold_lanes(const Lanes& x) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  return _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
}
inline __m256 halves_max(const Lanes& x) {
  return _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
}

inline float first_lane(const Lanes& x) { return _mm512_cvtss_f32(x.v); }

inline const std::uint8_t* as_bytes(const void* from) {
  return static_cast<const std::uint8_t*>(from);
}
inline Lanes load_lanes(const std::uint16_t* f16) { return {load_half(as_bytes(f16))}; }
inline Lanes bf16_lanes(const std::uint8_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
// The fp16 there, in all lanes; reads 8 bytes, which saves a move between registers.
inline Lanes half_lanes(const std::uint8_t* from) {
  const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return {_mm512_broadcastss_ps(_mm_cvtph_ps(bits))};
}
inline Lanes s8_lanes(__m128i codes) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes))}; }
inline Lanes s8_lanes(const std::uint8_t* from) {
  return s8_lanes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// 16 bytes of nibbles, of one kind, less `offset`.
constexpr float kNibbleUnit = 1.0F;
template <bool kHigh, int kOffset>
Lanes nibble_lanes(const std::uint8_t* from) {
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i codes = _mm_and_si128(kHigh ? _mm_srli_epi16(pairs, 4) : pairs, _mm_set1_epi8(15));
  return s8_lanes(_mm_sub_epi8(codes, _mm_set1_epi8(kOffset)));
}

}  // namespace
}  // namespace tsq::kernels
