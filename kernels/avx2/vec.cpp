// The element-wise kernels.
//
// Order: element i of a sum of squares goes to lane i mod 16 (two vectors), ascending; a masked
// load's zeros leave a lane as it is.
#include "kernels/avx2/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx2 {
namespace {

// y = f(x0, x1) for every vector.
template <class F>
void map(const float* x0, const float* x1, std::size_t n, float* y, F f) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    _mm256_storeu_ps(y + i, f(_mm256_loadu_ps(x0 + i), _mm256_loadu_ps(x1 + i)));
  }
  if (i < n) {
    const __m256i m = first_lanes(n - i);
    _mm256_maskstore_ps(y + i, m, f(_mm256_maskload_ps(x0 + i, m), _mm256_maskload_ps(x1 + i, m)));
  }
}

void rotate_pairs(float* x, const float* cos, const float* sin, std::size_t pairs) {
  std::size_t i = 0;
  for (; i + kWidth / 2 <= pairs; i += kWidth / 2) {
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cos + i)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sin + i)), twice);
    const __m256 v = _mm256_loadu_ps(x + 2 * i);
    const __m256 swapped = _mm256_permute_ps(v, 0xB1);
    _mm256_storeu_ps(x + 2 * i, _mm256_addsub_ps(_mm256_mul_ps(v, c), _mm256_mul_ps(swapped, s)));
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void rotate_halves(float* x, const float* cos, const float* sin, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; i += kWidth) {
    const __m256i m = first_lanes(pairs - i);
    const __m256 c = _mm256_maskload_ps(cos + i, m);
    const __m256 s = _mm256_maskload_ps(sin + i, m);
    const __m256 a = _mm256_maskload_ps(x + i, m);
    const __m256 b = _mm256_maskload_ps(x + pairs + i, m);
    _mm256_maskstore_ps(x + i, m, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
    _mm256_maskstore_ps(x + pairs + i, m, _mm256_add_ps(_mm256_mul_ps(a, s), _mm256_mul_ps(b, c)));
  }
}

}  // namespace

void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept {
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m256 v = _mm256_maskload_ps(x + i, first_lanes(n - i));
    __m256& lanes = sum[i / kWidth % 2];
    lanes = _mm256_fmadd_ps(v, v, lanes);
  }
  const float mean = reduce_lanes(sum[0], sum[1]) / static_cast<float>(n);
  const __m256 inv = _mm256_set1_ps(1.0F / __builtin_sqrtf(mean + eps));
  map(x, w, n, y,
      [inv](__m256 v, __m256 weight) { return _mm256_mul_ps(_mm256_mul_ps(v, inv), weight); });
}

void rope(float* x, const float* cos, const float* sin, std::size_t pairs, bool neox) noexcept {
  if (neox) {
    rotate_halves(x, cos, sin, pairs);
  } else {
    rotate_pairs(x, cos, sin, pairs);
  }
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* y) noexcept {
  map(gate, up, n, y, [](__m256 v, __m256 u) {
    const __m256 e = exp_f32(_mm256_xor_ps(v, _mm256_set1_ps(-0.0F)));
    return _mm256_mul_ps(_mm256_div_ps(v, _mm256_add_ps(_mm256_set1_ps(1.0F), e)), u);
  });
}

void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) noexcept {
  map(gate, x, n, y, [](__m256 g, __m256 v) {
    const __m256 e = exp_f32(_mm256_xor_ps(g, _mm256_set1_ps(-0.0F)));
    return _mm256_div_ps(v, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
  });
}

void add(const float* x, std::size_t n, float* y) noexcept {
  map(y, x, n, y, [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); });
}

void to_f16(const float* x, std::size_t n, std::uint16_t* y) noexcept {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) {
    const __m128i h = _mm_cvtps_ph(_mm_set_ss(x[i]), _MM_FROUND_TO_NEAREST_INT);
    y[i] = static_cast<std::uint16_t>(_mm_cvtsi128_si32(h));
  }
}

void from_f16(const std::uint16_t* x, std::size_t n, float* y) noexcept {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    _mm256_storeu_ps(y + i, load_half(reinterpret_cast<const std::uint8_t*>(x + i)));
  }
  for (; i < n; ++i) y[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x[i])));
}

void exp(const float* x, std::size_t n, float* y) noexcept {
  map(x, x, n, y, [](__m256 v, __m256) { return exp_f32(v); });
}

}  // namespace tsq::kernels::avx2
