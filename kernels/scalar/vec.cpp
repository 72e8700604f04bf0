// The element-wise kernels, the reference.
#include <cmath>

#include "kernels/isa.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {

bool quantize(const float* x, std::size_t count, std::int8_t* q, float* scale,
              std::int32_t* sum) noexcept {
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    const float* in = x + g * kGroup;
    std::int8_t* out = q + g * kGroup;
    float max = 0.0F;
    for (std::size_t i = 0; i < kGroup; ++i) {
      if (!std::isfinite(in[i])) return false;
      max = std::max(max, std::fabs(in[i]));
    }
    const bool zero = max < 1e-30F;
    const float inv = zero ? 0.0F : 127.0F / max;
    std::int32_t total = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      out[i] = static_cast<std::int8_t>(std::nearbyint(in[i] * inv));
      total += out[i];
    }
    scale[g] = zero ? 0.0F : max / 127.0F;
    sum[g] = total;
  }
  return true;
}

void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
  const float inv = 1.0F / std::sqrt(reduce_lanes(lanes) / static_cast<float>(n) + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * inv * w[i];
}

void rope(float* x, const float* cos, const float* sin, std::size_t pairs, bool neox) noexcept {
  for (std::size_t i = 0; i < pairs; ++i) {
    float& first = neox ? x[i] : x[2 * i];
    float& second = neox ? x[i + pairs] : x[2 * i + 1];
    const float a = first;
    const float b = second;
    first = a * cos[i] - b * sin[i];
    second = a * sin[i] + b * cos[i];
  }
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0F + exp_f32(-gate[i])) * up[i];
}

void add(const float* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
}

void to_f16(const float* x, std::size_t n, std::uint16_t* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = f32_to_f16(x[i]);
}

void from_f16(const std::uint16_t* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = f16_to_f32(x[i]);
}

void exp(const float* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = exp_f32(x[i]);
}

}  // namespace tsq::kernels::scalar
