// Sums of u8 codes times s8 activations by the dot-product instruction in its VEX form.
#pragma once

#include "kernels/avx2/vector.h"
#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

namespace level = avxvnni;

// One int32 a lane. GCC 12 spills sums around the intrinsic (its operand is tied to the result), so
// the instruction is written out.
struct Dot {
  static Ints zero() { return _mm256_setzero_si256(); }
  static std::int32_t start_bits(std::int32_t sum) { return sum; }
  static Ints add(Ints sum, Ints codes, Ints x) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(x));
    return sum;
  }
  static Ints total(Ints sum) { return sum; }
  // Of a sum times 1 and one times 4.
  static Ints total(const Ints (&planes)[kPlaneSums]) {
    return _mm256_add_epi32(planes[0], _mm256_srai_epi32(planes[1], 2));
  }
};

}  // namespace
}  // namespace tsq::kernels
