// The codes of s34's nibbles and signs, 8 rows a vector.
#pragma once

#include "kernels/avx2/vector.h"

namespace tsq::kernels {
namespace {

// Bit k of four bytes as a byte of all ones or none.
inline Ints mask_of(const std::uint8_t* bits) {
  std::int32_t four;
  __builtin_memcpy(&four, bits, sizeof four);
  const Ints byte =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const Ints bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const Ints spread = _mm256_shuffle_epi8(_mm256_set1_epi32(four), byte);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

// The codes of four quads, a byte each, from the low or high nibbles of `pair`.
inline Ints quads_of(Ints pair, bool high, const std::uint8_t* signs) {
  const Ints table = _mm256_broadcastsi128_si256(
      _mm_load_si128(reinterpret_cast<const __m128i*>(kS34Table.codes)));
  const Ints nibbles = high ? _mm256_srli_epi16(pair, 4) : pair;
  const Ints plus = _mm256_shuffle_epi8(table, _mm256_and_si256(nibbles, _mm256_set1_epi8(15)));
  const Ints minus = _mm256_sub_epi8(_mm256_set1_epi8(static_cast<char>(kS34Negate)), plus);
  return _mm256_blendv_epi8(plus, minus, mask_of(signs));
}

// The four codes of quad i, a byte each.
template <int i>
inline Ints lanes_of_quad(Ints quads) {
  Ints quad = _mm256_and_si256(_mm256_srli_epi32(quads, 8 * i), _mm256_set1_epi32(255));
  quad = _mm256_or_si256(quad, _mm256_slli_epi32(quad, 12));
  quad = _mm256_and_si256(quad, _mm256_set1_epi32(0x000F000F));
  quad = _mm256_or_si256(quad, _mm256_slli_epi32(quad, 6));
  return _mm256_and_si256(quad, _mm256_set1_epi8(3));
}

// 16 activations side by side: byte 4 p + j becomes that of quad j with lane p.
inline void transpose_quads(const std::int8_t* q, std::int8_t* to) {
  const Ints transposed = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (std::size_t at = 0; at < kGroup; at += 32) {
    const Ints in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + at));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), _mm256_shuffle_epi8(in, transposed));
  }
}

}  // namespace
}  // namespace tsq::kernels
