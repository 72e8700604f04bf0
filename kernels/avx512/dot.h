// Sums of u8 codes times s8 activations by the dot-product instruction.
#pragma once

#include "kernels/avx512/vector.h"
#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

namespace level = avx512;

// One int32 a lane.
struct Dot {
  static Ints zero() { return _mm512_setzero_si512(); }
  static std::int32_t start_bits(std::int32_t sum) { return sum; }
  static Ints add(Ints sum, Ints codes, Ints x) { return dot4(sum, codes, x); }
  static Ints total(Ints sum) { return sum; }
  // Of sums times 1, 4, 16 and 64.
  static Ints total(const Ints (&planes)[kPlaneSums]) {
    return _mm512_add_epi32(
        _mm512_add_epi32(planes[0], _mm512_srai_epi32(planes[1], 2)),
        _mm512_add_epi32(_mm512_srai_epi32(planes[2], 4), _mm512_srai_epi32(planes[3], 6)));
  }
};

}  // namespace
}  // namespace tsq::kernels
