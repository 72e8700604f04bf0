// The element-wise kernels that gain from 512 bits; the others are avx2's.
//
// Order: element i of a sum of squares goes to lane i mod 16, ascending; a masked load's zeros
// leave a lane as it is.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {

void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept {
  __m512 sum = _mm512_setzero_ps();
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m512 v = _mm512_maskz_loadu_ps(first_lanes(n - i), x + i);
    sum = _mm512_fmadd_ps(v, v, sum);
  }
  const float mean = reduce_lanes(sum) / static_cast<float>(n);
  const __m512 inv = _mm512_set1_ps(1.0F / __builtin_sqrtf(mean + eps));
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 m = first_lanes(n - i);
    const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), inv);
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
  }
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* y) noexcept {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 m = first_lanes(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(m, gate + i);
    const __m512 e = exp_f32(_mm512_xor_ps(v, _mm512_set1_ps(-0.0F)));
    const __m512 silu = _mm512_div_ps(v, _mm512_add_ps(one, e));
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(m, up + i)));
  }
}

void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) noexcept {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 m = first_lanes(n - i);
    const __m512 g = _mm512_maskz_loadu_ps(m, gate + i);
    const __m512 e = exp_f32(_mm512_xor_ps(g, _mm512_set1_ps(-0.0F)));
    const __m512 v = _mm512_maskz_loadu_ps(m, x + i);
    _mm512_mask_storeu_ps(y + i, m, _mm512_div_ps(v, _mm512_add_ps(one, e)));
  }
}

void exp(const float* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 m = first_lanes(n - i);
    _mm512_mask_storeu_ps(y + i, m, exp_f32(_mm512_maskz_loadu_ps(m, x + i)));
  }
}

}  // namespace tsq::kernels::avx512
