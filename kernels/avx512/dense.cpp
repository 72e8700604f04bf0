#include "kernels/avx512/lanes.h"
#include "kernels/isa.h"
#include "kernels/x86/dense_gemm.h"

namespace tsq::kernels::avx512 {

void dense_gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  dense(w, rows, x, y);
}

}  // namespace tsq::kernels::avx512
