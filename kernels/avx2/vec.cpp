// The element-wise kernels; RoPE and fp16 are written for 8 lanes.
#include "kernels/avx2/floats.h"
#include "kernels/isa.h"
#include "kernels/x86/elementwise.h"

namespace tsq::kernels::avx2 {
namespace {

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
  rms_norm_row(x, w, n, eps, y);
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* y) noexcept {
  silu_mul_row(gate, up, n, y);
}

void rope(float* x, const float* cos, const float* sin, std::size_t pairs, bool neox) noexcept {
  if (neox) {
    rotate_halves(x, cos, sin, pairs);
  } else {
    rotate_pairs(x, cos, sin, pairs);
  }
}

void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) noexcept {
  sigmoid_mul_row(gate, x, n, y);
}

void add(const float* x, std::size_t n, float* y) noexcept {
  for_vectors(n, [&](std::size_t i, auto lanes) {
    store(y + i, lanes, kernels::add(load(y + i, lanes), load(x + i, lanes)));
  });
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

void exp(const float* x, std::size_t n, float* y) noexcept { exp_row(x, n, y); }

}  // namespace tsq::kernels::avx2
