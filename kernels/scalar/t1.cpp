// t1, the reference. A byte holds five base-3 digits as a fixed-point fraction, byte = ceil(256 q /
// 243): three times it is the first digit (bits 8 and up) and the fraction of the other four.
// Body byte j of dword c of a group, digit d: input 20 c + 4 d + j. Byte j of tail dword t of a
// super-block: digit d belongs to its group d, input 120 + 4 t + j there.
#include "kernels/isa.h"
#include "kernels/scalar/ternary.h"

namespace tsq::kernels::scalar {
namespace {

std::uint8_t next_digit(unsigned& fraction) {
  fraction *= 3;
  const auto digit = static_cast<std::uint8_t>(fraction >> 8);
  fraction &= 255;
  return digit;
}

struct T1 {
  static const std::byte* group(const TernaryMatrix& w, std::size_t row, std::size_t g,
                                std::uint8_t* codes) {
    const std::size_t lines = scale_lines(w.scale_kind);
    const std::size_t groups = w.cols / kGroup;
    const std::size_t in_block = row % kRowBlock;
    const std::size_t in_super = g % kT1Super;
    const T1Super super = t1_super(groups, g, lines);
    const std::byte* scales =
        w.body + row / kRowBlock * t1_row_block_bytes(groups, lines) + super.offset;
    const std::byte* tails = scales + super.groups * lines * kScaleLine + 4 * in_block;
    const std::byte* body = tails + kT1TailBytes + in_super * kT1Chunks * kPlane;
    for (std::size_t c = 0; c < kT1Chunks; ++c) {
      for (std::size_t j = 0; j < 4; ++j) {
        auto fraction = std::to_integer<unsigned>(body[c * kPlane + j]);
        for (std::size_t d = 0; d < 5; ++d) codes[20 * c + 4 * d + j] = next_digit(fraction);
      }
    }
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t j = 0; j < 4; ++j) {
        auto fraction = std::to_integer<unsigned>(tails[t * kPlane + j]);
        for (std::size_t d = 0; d <= in_super; ++d) {
          codes[kT1BodyInputs + 4 * t + j] = next_digit(fraction);
        }
      }
    }
    return scales + in_super * kScaleLine + 2 * in_block;
  }
};

}  // namespace

void t1_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T1>(w, rows, x, y);
}

void t1_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T1>(w, rows, x, y);
}

void t1_row(const TernaryMatrix& w, std::size_t row, float* values) noexcept {
  ternary_row<T1>(w, row, values);
}

}  // namespace tsq::kernels::scalar
