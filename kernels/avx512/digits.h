// The five base-3 digits of a t1 byte.
//
// Trick: 27 v of a fixed-point byte v has three digits in its high byte, which look-ups part, and
// the fraction of the other two in its low one, whose 9-fold has those.
// Overflow: 27 * 255 < 2^15.
#pragma once

#include "kernels/avx512/vector.h"

namespace tsq::kernels {
namespace {

// Digit tables: i / 9, i / 3 and i, modulo 3.
struct DigitTable {
  alignas(64) std::uint8_t digit[64];
};
constexpr DigitTable digit_table(int divisor) {
  DigitTable t{};
  for (int i = 0; i < 27; ++i) t.digit[i] = static_cast<std::uint8_t>(i / divisor % 3);
  return t;
}
constexpr DigitTable kDigitTables[3] = {digit_table(9), digit_table(3), digit_table(1)};

// factor * v for every byte, its two bytes apart; factor < 128.
struct Product {
  Ints high;
  Ints low;
};
inline Product multiply(Ints v, int factor) {
  constexpr __mmask64 kOdd = 0xAAAAAAAAAAAAAAAA;
  const Ints even = _mm512_maddubs_epi16(v, _mm512_set1_epi16(static_cast<short>(factor)));
  const Ints odd = _mm512_maddubs_epi16(v, _mm512_set1_epi16(static_cast<short>(factor << 8)));
  return {_mm512_mask_mov_epi8(_mm512_srli_epi16(even, 8), kOdd, odd),
          _mm512_mask_mov_epi8(even, kOdd, _mm512_slli_epi16(odd, 8))};
}

inline void split(Ints v, Ints (&digits)[5]) {
  const Product first = multiply(v, 27);
  const Product second = multiply(first.low, 9);
  for (int d = 0; d < 5; ++d) {
    const Ints table = _mm512_load_si512(&kDigitTables[d < 3 ? d : d - 2]);
    digits[d] = _mm512_permutexvar_epi8(d < 3 ? first.high : second.high, table);
  }
}

}  // namespace
}  // namespace tsq::kernels
