// The element-wise kernels, the reference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {

namespace {

// max |x|, infinite if any x is infinite or not a number.
float max_magnitude(const float* x, std::size_t n) {
  float max = 0.0F;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::infinity();
    max = std::max(max, std::fabs(x[i]));
  }
  return max;
}

// q = x * factor, rounded, of a group; their sum.
std::int32_t round_group(const float* x, float factor, std::int8_t* q) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    q[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * factor));
    sum += q[i];
  }
  return sum;
}

}  // namespace

bool quantize(const float* x, std::size_t count, std::int8_t* q, float* scale,
              std::int32_t* sum) noexcept {
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    const float max = max_magnitude(x + g * kGroup, kGroup);
    if (!std::isfinite(max)) return false;
    const bool zero = max < 1e-30F;
    sum[g] = round_group(x + g * kGroup, zero ? 0.0F : 127.0F / max, q + g * kGroup);
    scale[g] = zero ? 0.0F : max / 127.0F;
  }
  return true;
}

bool quantize_token(const float* x, std::size_t count, std::int8_t* q, float* scale,
                    std::int32_t* sum, float* token_scale) noexcept {
  const float max = max_magnitude(x, count);
  if (!std::isfinite(max)) return false;
  const float s = 127.0F / std::max(max, 1e-5F);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    sum[g] = round_group(x + g * kGroup, s, q + g * kGroup);
    scale[g] = 1.0F / s;
  }
  *token_scale = s;
  return true;
}

void half_sums(const std::int8_t* q, std::size_t count, std::int32_t* half_sum) noexcept {
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kGroup / 2; ++i) sum += q[g * kGroup + i];
    half_sum[g] = sum;
  }
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

void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] / (1.0F + exp_f32(-gate[i]));
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
