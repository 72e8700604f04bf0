// The element-wise kernels that gain from 512 bits; the others are avx2's.
//
// Overflow: a group's sum of int8 is at most 128 * 127.
// Order: element i of a sum of squares goes to lane i mod 16, ascending; a masked load's zeros
// leave a lane as it is.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {

bool quantize(const float* x, std::size_t count, std::int8_t* q, float* scale,
              std::int32_t* sum) noexcept {
  constexpr int kVectors = kGroup / kWidth;
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    __m512 v[kVectors];
    // As integers, magnitudes order like the floats; infinity and NaN are above all of them.
    __m512i largest = _mm512_setzero_si512();
    for (int i = 0; i < kVectors; ++i) {
      v[i] = _mm512_loadu_ps(x + g * kGroup + i * kWidth);
      const __m512i bits = _mm512_and_si512(_mm512_castps_si512(v[i]), magnitude);
      largest = _mm512_max_epi32(largest, bits);
    }
    const std::int32_t max_bits = _mm512_reduce_max_epi32(largest);
    if (max_bits >= 0x7F800000) return false;
    float max;
    __builtin_memcpy(&max, &max_bits, sizeof max);
    const bool zero = max < 1e-30F;
    const __m512 inv = _mm512_set1_ps(zero ? 0.0F : 127.0F / max);
    __m512i total = _mm512_setzero_si512();
    for (int i = 0; i < kVectors; ++i) {
      const __m512i codes = _mm512_cvtps_epi32(_mm512_mul_ps(v[i], inv));
      total = _mm512_add_epi32(total, codes);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(q + g * kGroup + i * kWidth),
                       _mm512_cvtepi32_epi8(codes));
    }
    scale[g] = zero ? 0.0F : max / 127.0F;
    sum[g] = _mm512_reduce_add_epi32(total);
  }
  return true;
}

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

void exp(const float* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 m = first_lanes(n - i);
    _mm512_mask_storeu_ps(y + i, m, exp_f32(_mm512_maskz_loadu_ps(m, x + i)));
  }
}

}  // namespace tsq::kernels::avx512
