// What the AVX-512 kernels share. Everything is in an unnamed namespace: code compiled for this
// level must not become the copy that the linker keeps for all.
#pragma once

#include <immintrin.h>

#include "kernels/exp_constants.h"
#include "kernels/layout.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kWidth = 16;  // floats of a vector

// acc += u8 codes . s8 x in each 32-bit lane. GCC 12 spills accumulators around the intrinsic (its
// operand is tied to the result), so the instruction is written out.
inline __m512i dot4(__m512i acc, __m512i codes, __m512i x) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(codes), "v"(x));
  return acc;
}

inline __m512i load(const std::uint8_t* from) { return _mm512_loadu_si512(from); }

// Four bytes into every 32-bit lane.
inline __m512i broadcast4(const std::int8_t* from) {
  std::int32_t four;
  __builtin_memcpy(&four, from, sizeof four);
  return _mm512_set1_epi32(four);
}

inline __m512 load_half(const std::uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// 16 lanes where n is 16 or more, the first n else.
inline __mmask16 first_lanes(std::size_t n) {
  return n >= kWidth ? __mmask16{0xFFFF} : static_cast<__mmask16>((1U << n) - 1);
}

// The fixed tree: + 8, + 4, + 2, + 1.
inline float reduce_lanes(__m512 v) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
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
inline __m512 exp_f32(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 round = _mm512_set1_ps(kRound);
  const __m512 t = _mm512_fmadd_ps(x, _mm512_set1_ps(kLog2E), round);
  const __m512 n = _mm512_sub_ps(t, round);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(kExpC6), r, _mm512_set1_ps(kExpC5));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC4));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC3));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC2));
  p = _mm512_fmadd_ps(p, r, one);
  p = _mm512_fmadd_ps(p, r, one);
  const __m512i scaled =
      _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23));
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpMin), _CMP_NLT_UQ);
  const __mmask16 over = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpMax), _CMP_GT_OQ);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  __m512 y = _mm512_castsi512_ps(_mm512_maskz_mov_epi32(normal, scaled));
  y = _mm512_mask_mov_ps(y, over, _mm512_set1_ps(__builtin_inff()));
  return _mm512_mask_mov_ps(y, nan, x);
}

}  // namespace
}  // namespace tsq::kernels
