// The 16 lanes of a float sum as two vectors: what kernels/x86 is written in.
#pragma once

#include "kernels/avx2/simd.h"

namespace tsq::kernels {
namespace {

struct Lanes {
  __m256 low, high;
};

// Sums that a tile may hold, beside what it reads: 12 of 16 registers.
constexpr int kTileSums = 6;
// Rows by columns of a tile of decoded weights.
constexpr int kTileRows = 2, kTileColumns = 3;

inline Lanes zero_lanes() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Lanes all_lanes(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes load_lanes(const float* from) {
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + kWidth)};
}
inline void store_lanes(float* to, const Lanes& x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + kWidth, x.high);
}
inline Lanes add(const Lanes& a, const Lanes& b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Lanes sub(const Lanes& a, const Lanes& b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Lanes mul(const Lanes& a, const Lanes& b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Lanes div(const Lanes& a, const Lanes& b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
// b where either is not a number.
inline Lanes max(const Lanes& a, const Lanes& b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Lanes exp_lanes(const Lanes& x) { return {exp_f32(x.low), exp_f32(x.high)}; }
inline float sum_lanes(const Lanes& x) { return reduce_lanes(x.low, x.high); }

// The first two folds of the fixed tree: + 8, + 4.
inline __m128 fold_lanes(const Lanes& x) {
  const __m256 by8 = _mm256_add_ps(x.low, x.high);
  return _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
}
inline __m256 halves_max(const Lanes& x) { return _mm256_max_ps(x.low, x.high); }

inline float first_lane(const Lanes& x) { return _mm256_cvtss_f32(x.low); }

inline const std::uint8_t* as_bytes(const void* from) {
  return static_cast<const std::uint8_t*>(from);
}
inline Lanes load_lanes(const std::uint16_t* f16) {
  return {load_half(as_bytes(f16)), load_half(as_bytes(f16 + kWidth))};
}
inline Lanes bf16_lanes(const std::uint8_t* from) {
  const auto eight = [](const std::uint8_t* at) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  };
  return {eight(from), eight(from + 2 * kWidth)};
}
// The fp16 there, in all lanes; reads 8 bytes, which saves a move between registers.
inline Lanes half_lanes(const std::uint8_t* from) {
  const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m256 all = _mm256_broadcastss_ps(_mm_cvtph_ps(bits));
  return {all, all};
}
inline Lanes s8_lanes(const std::uint8_t* from) {
  const auto eight = [](const std::uint8_t* at) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  };
  return {eight(from), eight(from + kWidth)};
}

// 16 bytes of nibbles, of one kind, less `offset`. A byte goes to the top of its lane, where the
// conversion sees its sign: the values come out times 2^24.
constexpr float kNibbleUnit = 0x1p-24F;
template <bool kHigh, int kOffset>
Lanes nibble_lanes(const std::uint8_t* from) {
  const __m256i pairs =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  const __m256i nibbles =
      _mm256_and_si256(kHigh ? _mm256_srli_epi16(pairs, 4) : pairs, _mm256_set1_epi8(15));
  const __m256i codes = _mm256_sub_epi8(nibbles, _mm256_set1_epi8(kOffset));
  const __m256i first =
      _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3,  //
                       -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, 6, -1, -1, -1, 7);
  const __m256i second = _mm256_add_epi32(first, _mm256_set1_epi32(8 << 24));
  return {_mm256_cvtepi32_ps(_mm256_shuffle_epi8(codes, first)),
          _mm256_cvtepi32_ps(_mm256_shuffle_epi8(codes, second))};
}

}  // namespace
}  // namespace tsq::kernels
