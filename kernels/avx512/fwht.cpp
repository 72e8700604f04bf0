#include "kernels/avx512/floats.h"
#include "kernels/isa.h"
#include "kernels/x86/fwht_2d.h"
#include "kernels/x86/quantize.h"

namespace tsq::kernels::avx512 {

void fwht(float* x, std::size_t count, std::size_t n) noexcept {
  Unchanged unchanged;
  transforms(x, x, count, n, x, unchanged, unchanged);
}

void fwht_matrix(const RowMajorF32& x, std::size_t row_block, std::size_t col_block,
                 Maxima max) noexcept {
  transform_matrix(x, row_block, col_block, max);
}

void rotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
            float* y) noexcept {
  rotate_runs(x, signs, count, block, y, Scaled{norm(block)});
}

void unrotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
              float* y) noexcept {
  unrotate_runs(x, signs, count, block, y);
}

bool quantize(const float* x, std::size_t count, const Q8Column& out) noexcept {
  return quantize_column(x, count, out);
}

bool rotate_quantize(const float* x, const std::uint32_t* signs, std::size_t count,
                     std::size_t block, float* y, std::size_t padded,
                     const Q8Column& out) noexcept {
  return rotate_quantize_column(x, signs, count, block, y, padded, out);
}

}  // namespace tsq::kernels::avx512
