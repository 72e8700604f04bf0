// kernels/x86/s34_layout.h for this level.
#include "kernels/avx512/dot.h"
#include "kernels/avx512/quads.h"
#include "kernels/x86/s34_layout.h"
#include "kernels/x86/ternary_gemm_f32.h"

namespace tsq::kernels::avx512 {

void s34_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<S34>(w, rows, x, y);
}

void s34_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<S34>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx512
