// t2, the reference. A group of a row block is its lines of 32 fp16 scales, if any, and 8 planes;
// row r's dword of plane c is bytes 4 r to 4 r + 3, and bits 2 p, 2 p + 1 of its byte j hold input
// 16 c + 4 p + j.
#include "kernels/isa.h"
#include "kernels/scalar/ternary.h"

namespace tsq::kernels::scalar {
namespace {

struct T2 {
  static const std::byte* group(const TernaryMatrix& w, std::size_t row, std::size_t g,
                                std::uint8_t* codes) {
    const std::size_t lines = scale_lines(w.scale_kind);
    const std::size_t in_block = row % kRowBlock;
    const std::byte* group = w.body + row / kRowBlock * t2_row_block_bytes(w.cols / kGroup, lines) +
                             g * t2_group_bytes(lines);
    for (std::size_t c = 0; c < kT2Chunks; ++c) {
      const std::byte* dword = group + lines * kScaleLine + c * kPlane + 4 * in_block;
      for (std::size_t p = 0; p < 4; ++p) {
        for (std::size_t j = 0; j < 4; ++j) {
          codes[16 * c + 4 * p + j] =
              static_cast<std::uint8_t>(std::to_integer<unsigned>(dword[j]) >> (2 * p) & 3);
        }
      }
    }
    return group + 2 * in_block;
  }
};

}  // namespace

void t2_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T2>(w, rows, x, y);
}

void t2_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T2>(w, rows, x, y);
}

void t2_row(const TernaryMatrix& w, std::size_t row, float* values) noexcept {
  ternary_row<T2>(w, row, values);
}

}  // namespace tsq::kernels::scalar
