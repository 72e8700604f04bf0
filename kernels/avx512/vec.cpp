// The element-wise kernels that gain from 512 bits; the others are avx2's.
//
// Overflow: a group's sum of int8 is at most 128 * 127.
// Order: element i of a sum of squares goes to lane i mod 16, ascending; a masked load's zeros
// leave a lane as it is.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {

namespace {

// max |x| of whole vectors, not finite if any x is not.
inline float max_magnitude(const float* x, std::size_t n) {
  // As integers, magnitudes order like the floats; infinity and NaN are above all of them.
  __m512i largest = _mm512_setzero_si512();
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(x + i));
    largest = _mm512_max_epi32(largest, _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)));
  }
  const std::int32_t bits = _mm512_reduce_max_epi32(largest);
  float max;
  __builtin_memcpy(&max, &bits, sizeof max);
  return max;
}
inline bool is_finite(float max) { return max < __builtin_inff(); }

// q = x * factor, rounded, of a group; their sum.
inline std::int32_t round_group(const float* x, float factor, std::int8_t* q) {
  __m512i total = _mm512_setzero_si512();
  for (std::size_t i = 0; i < kGroup; i += kWidth) {
    const __m512i codes =
        _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(factor)));
    total = _mm512_add_epi32(total, codes);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i), _mm512_cvtepi32_epi8(codes));
  }
  return _mm512_reduce_add_epi32(total);
}

}  // namespace

bool quantize(const float* x, std::size_t count, std::int8_t* q, float* scale,
              std::int32_t* sum) noexcept {
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    const float max = max_magnitude(x + g * kGroup, kGroup);
    if (!is_finite(max)) return false;
    const bool zero = max < 1e-30F;
    sum[g] = round_group(x + g * kGroup, zero ? 0.0F : 127.0F / max, q + g * kGroup);
    scale[g] = zero ? 0.0F : max / 127.0F;
  }
  return true;
}

bool quantize_token(const float* x, std::size_t count, std::int8_t* q, float* scale,
                    std::int32_t* sum, float* token_scale) noexcept {
  const float max = max_magnitude(x, count);
  if (!is_finite(max)) return false;
  const float s = 127.0F / (max < 1e-5F ? 1e-5F : max);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    sum[g] = round_group(x + g * kGroup, s, q + g * kGroup);
    scale[g] = 1.0F / s;
  }
  *token_scale = s;
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
