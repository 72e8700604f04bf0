#include "kernels/avx2/lanes.h"
#include "kernels/isa.h"
#include "kernels/x86/dense_gemm.h"

namespace tsq::kernels::avx2 {

void dense_gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  dense(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
