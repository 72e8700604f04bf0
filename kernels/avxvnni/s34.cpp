// kernels/x86/s34_layout.h for this level.
#include "kernels/avx2/quads.h"
#include "kernels/avxvnni/dot.h"
#include "kernels/x86/s34_layout.h"

namespace tsq::kernels::avxvnni {

void s34_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<S34>(w, rows, x, y);
}

}  // namespace tsq::kernels::avxvnni
