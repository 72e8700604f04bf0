// kernels/x86/t1_layout.h for this level.
#include "kernels/avx512/digits.h"
#include "kernels/avx512/dot.h"
#include "kernels/x86/t1_telescoped.h"
#include "kernels/x86/ternary_gemm_f32.h"

namespace tsq::kernels::avx512 {

void t1_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T1>(w, rows, x, y);
}

void t1_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T1>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx512
