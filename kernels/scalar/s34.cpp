// s34, the reference. A group of a row block is a line of 32 fp16 scales, if any, 4 planes of
// nibbles and 8 chunks of signs. Chunk c has the quads 4 c + j (j 0 to 3): the nibble of row r is
// byte 4 r + j of plane c / 2, its low half where c is even; the sign is bit 4 r + j of the chunk's
// 16 bytes. Lane p of quad q is input 4 q + p, or with stride 16 input 64 (q / 16) + q mod 16 + 16
// p.
#include "kernels/isa.h"
#include "kernels/scalar/ternary.h"

namespace tsq::kernels::scalar {
namespace {

struct S34 {
  static const std::byte* group(const TernaryMatrix& w, std::size_t row, std::size_t g,
                                std::uint8_t* codes) {
    const std::size_t lines = scale_lines(w.scale_kind);
    const std::size_t in_block = row % kRowBlock;
    const std::byte* group = w.body +
                             row / kRowBlock * s34_row_block_bytes(w.cols / kGroup, lines) +
                             g * s34_group_bytes(lines);
    const std::byte* codes_of = group + lines * kScaleLine;
    for (std::size_t q = 0; q < kGroup / 4; ++q) {
      const std::size_t c = q / 4;
      const std::size_t bit = 4 * in_block + q % 4;
      const auto nibbles = std::to_integer<unsigned>(codes_of[c / 2 * kPlane + bit]);
      const auto signs =
          std::to_integer<unsigned>(codes_of[kS34NibbleBytes + c * kS34SignBytes + bit / 8]);
      unsigned byte = kS34Table.codes[c % 2 == 0 ? nibbles & 15 : nibbles >> 4];
      if ((signs >> (bit % 8) & 1) != 0) byte = kS34Negate - byte;
      for (std::size_t p = 0; p < 4; ++p) {
        const std::size_t input = w.stride16 ? 64 * (q / 16) + q % 16 + 16 * p : 4 * q + p;
        codes[input] = static_cast<std::uint8_t>(byte >> (2 * p) & 3);
      }
    }
    return group + 2 * in_block;
  }
};

}  // namespace

void s34_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<S34>(w, rows, x, y);
}

void s34_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<S34>(w, rows, x, y);
}

void s34_row(const TernaryMatrix& w, std::size_t row, float* values) noexcept {
  ternary_row<S34>(w, row, values);
}

}  // namespace tsq::kernels::scalar
