// The element-wise kernels that gain from 512 bits; the others are avx2's.
#include "kernels/avx512/floats.h"
#include "kernels/isa.h"
#include "kernels/x86/elementwise.h"

namespace tsq::kernels::avx512 {

void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept {
  rms_norm_row(x, w, n, eps, y);
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* y) noexcept {
  silu_mul_row(gate, up, n, y);
}

void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) noexcept {
  sigmoid_mul_row(gate, x, n, y);
}

void exp(const float* x, std::size_t n, float* y) noexcept { exp_row(x, n, y); }

}  // namespace tsq::kernels::avx512
