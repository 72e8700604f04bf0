// What the AVX2 kernels share. Everything is in an unnamed namespace: code compiled for this level
// must not become the copy that the linker keeps for all.
#pragma once

#include <immintrin.h>

#include "kernels/exp_constants.h"
#include "kernels/layout.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kWidth = 8;  // floats of a vector

inline __m256i load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(std::uint8_t* to, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}

// Four bytes into every 32-bit lane.
inline __m256i broadcast4(const std::int8_t* from) {
  std::int32_t four;
  __builtin_memcpy(&four, from, sizeof four);
  return _mm256_set1_epi32(four);
}

inline __m256 load_half(const std::uint8_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// acc += u8 codes . s8 x in each 16-bit lane; codes of at most 2 cannot saturate a pair.
inline __m256i dot2(__m256i acc, __m256i codes, __m256i x) {
  return _mm256_add_epi16(acc, _mm256_maddubs_epi16(codes, x));
}

// The 16-bit lanes of a row's dword added up.
inline __m256i widen(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

// A mask of all lanes where n is 8 or more, of the first n else.
inline __m256i first_lanes(std::size_t n) {
  const int lanes = static_cast<int>(min_size(n, kWidth));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The fixed tree of 16 lanes, low and high: + 8, + 4, + 2, + 1.
inline float reduce_lanes(__m256 low, __m256 high) {
  const __m256 by8 = _mm256_add_ps(low, high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

// How far ahead of its use a line is asked for. Two streams of 2 KiB leave most of a 32 KiB L1
// alone; with 8 KiB the same kernel lost a quarter of its speed there.
constexpr std::size_t kAhead = 2048;
inline void prefetch(const std::uint8_t* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from + kAhead), _MM_HINT_T0);
}

// exp_constants.h says how.
inline __m256 exp_f32(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 round = _mm256_set1_ps(kRound);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(kLog2E), round);
  const __m256 n = _mm256_sub_ps(t, round);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2High), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Low), r);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(kExpC6), r, _mm256_set1_ps(kExpC5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC2));
  p = _mm256_fmadd_ps(p, r, one);
  p = _mm256_fmadd_ps(p, r, one);
  const __m256i scaled =
      _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
  const __m256 normal = _mm256_cmp_ps(x, _mm256_set1_ps(kExpMin), _CMP_NLT_UQ);
  const __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(kExpMax), _CMP_GT_OQ);
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  __m256 y = _mm256_and_ps(_mm256_castsi256_ps(scaled), normal);
  y = _mm256_blendv_ps(y, _mm256_set1_ps(__builtin_inff()), over);
  return _mm256_blendv_ps(y, x, nan);
}

}  // namespace
}  // namespace tsq::kernels
