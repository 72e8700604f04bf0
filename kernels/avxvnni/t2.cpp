// kernels/x86/t2_layout.h for this level.
#include "kernels/avxvnni/dot.h"
#include "kernels/x86/t2_layout.h"

namespace tsq::kernels::avxvnni {

void t2_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T2>(w, rows, x, y);
}

}  // namespace tsq::kernels::avxvnni
