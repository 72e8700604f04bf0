// The five base-3 digits of a t1 byte.
//
// Trick: 9 v of a fixed-point byte v has two digits in its high byte, which two look-ups part, and
// the fraction of the others in its low one. Even and odd bytes go as 16-bit fractions of their
// own, so that the products need no unpacking: their high halves are the digits.
#pragma once

#include "kernels/avx2/vector.h"

namespace tsq::kernels {
namespace {

// The high halves of factor times the even and odd fractions, as bytes.
inline Ints high_bytes(Ints even, Ints odd, Ints factor) {
  return _mm256_or_si256(_mm256_mulhi_epu16(even, factor),
                         _mm256_slli_epi16(_mm256_mulhi_epu16(odd, factor), 8));
}

inline void split(Ints v, Ints (&digits)[5]) {
  const Ints third =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0));
  const Ints rest =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0));
  const Ints nine = _mm256_set1_epi16(9);
  Ints even = _mm256_slli_epi16(v, 8);
  Ints odd = _mm256_and_si256(v, _mm256_set1_epi16(static_cast<short>(0xFF00)));
  for (int d = 0; d < 4; d += 2) {
    const Ints pair = high_bytes(even, odd, nine);
    digits[d] = _mm256_shuffle_epi8(third, pair);
    digits[d + 1] = _mm256_shuffle_epi8(rest, pair);
    even = _mm256_mullo_epi16(even, nine);
    odd = _mm256_mullo_epi16(odd, nine);
  }
  digits[4] = high_bytes(even, odd, _mm256_set1_epi16(3));
}

}  // namespace
}  // namespace tsq::kernels
