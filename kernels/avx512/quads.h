// The codes of s34's nibbles and signs, 16 rows a vector.
#pragma once

#include "kernels/avx512/vector.h"

namespace tsq::kernels {
namespace {

// The codes of four quads, a byte each, from the low or high nibbles of `pair`. The look-up needs
// no mask: its table is there four times.
inline Ints quads_of(Ints pair, bool high, const std::uint8_t* signs) {
  const Ints table =
      _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kS34Table.codes)));
  const Ints plus = _mm512_permutexvar_epi8(high ? _mm512_srli_epi16(pair, 4) : pair, table);
  __mmask64 negative;
  __builtin_memcpy(&negative, signs, sizeof negative);
  const Ints negate = _mm512_set1_epi8(static_cast<char>(kS34Negate));
  return _mm512_mask_sub_epi8(plus, negative, negate, plus);
}

// The four codes of quad i, a byte each.
template <int i>
inline Ints lanes_of_quad(Ints quads) {
  // Of the two rows in 64 bits: where the lanes of quad 0 start.
  const Ints lanes = _mm512_set1_epi64(0x2624222006040200 + 0x0808080808080808 * i);
  return _mm512_and_si512(_mm512_multishift_epi64_epi8(lanes, quads), _mm512_set1_epi8(3));
}

// 16 activations side by side: byte 4 p + j becomes that of quad j with lane p.
inline void transpose_quads(const std::int8_t* q, std::int8_t* to) {
  const Ints transposed =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (std::size_t at = 0; at < kGroup; at += 64) {
    _mm512_storeu_si512(to + at, _mm512_shuffle_epi8(_mm512_loadu_si512(q + at), transposed));
  }
}

}  // namespace
}  // namespace tsq::kernels
