// Sums of u8 codes times s8 activations without a dot-product instruction.
#pragma once

#include "kernels/avx2/vector.h"
#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

namespace level = avx2;

// Two 16-bit sums a lane, which must stay under 2^15; total() gives the lane's int32. Codes are at
// most 8, so that no pair of products saturates.
struct Dot {
  static Ints zero() { return _mm256_setzero_si256(); }
  // The whole sum to the lower one.
  static std::int32_t start_bits(std::int32_t sum) { return sum & 0xFFFF; }
  // Written out: GCC adds the products of an unrolled loop in an order of its own and spills them.
  static Ints add(Ints sum, Ints codes, Ints x) {
    Ints product;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(sum), "=&x"(product)
            : "x"(codes), "x"(x));
    return sum;
  }
  static Ints total(Ints sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
  // Of a sum times 1 and one times 4, which 16-bit lanes can still join.
  static Ints total(const Ints (&planes)[kPlaneSums]) {
    return total(_mm256_add_epi16(planes[0], _mm256_srai_epi16(planes[1], 2)));
  }
};

}  // namespace
}  // namespace tsq::kernels
