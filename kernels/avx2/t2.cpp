// kernels/x86/t2_layout.h for this level.
#include "kernels/avx2/dot.h"
#include "kernels/x86/t2_layout.h"
#include "kernels/x86/ternary_gemm_f32.h"

namespace tsq::kernels::avx2 {

void t2_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T2>(w, rows, x, y);
}

void t2_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T2>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
