// kernels/x86/t1_layout.h for this level.
#include "kernels/avx2/digits.h"
#include "kernels/avxvnni/dot.h"
#include "kernels/x86/t1_telescoped.h"

namespace tsq::kernels::avxvnni {

void t1_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T1>(w, rows, x, y);
}

}  // namespace tsq::kernels::avxvnni
