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

// Group g of x: q = x * factor, rounded, and the sums of q.
void round_group(const float* x, std::size_t g, float factor, const Q8Column& out) {
  std::int32_t sum = 0;
  for (std::size_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
    if (i % kGroup == kGroup / 2 && out.half_sum != nullptr) out.half_sum[g] = sum;
    out.q[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * factor));
    sum += out.q[i];
  }
  out.sum[g] = sum;
}

bool quantize_token(const float* x, std::size_t count, const Q8Column& out) {
  const float max = max_magnitude(x, count);
  if (!std::isfinite(max)) return false;
  const float s = 127.0F / std::max(max, 1e-5F);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    round_group(x, g, s, out);
    out.scale[g] = 1.0F / s;
  }
  *out.token_scale = s;
  return true;
}

}  // namespace

bool quantize(const float* x, std::size_t count, const Q8Column& out) noexcept {
  if (out.token_scale != nullptr) return quantize_token(x, count, out);
  for (std::size_t g = 0; g < count / kGroup; ++g) {
    const float max = max_magnitude(x + g * kGroup, kGroup);
    if (!std::isfinite(max)) return false;
    const bool zero = max < 1e-30F;
    round_group(x, g, zero ? 0.0F : 127.0F / max, out);
    out.scale[g] = zero ? 0.0F : max / 127.0F;
  }
  return true;
}

bool rotate_quantize(const float* x, const std::uint32_t* signs, std::size_t count,
                     std::size_t block, float* y, std::size_t padded,
                     const Q8Column& out) noexcept {
  rotate(x, signs, count, block, y);
  std::fill(y + count, y + padded, 0.0F);
  return quantize(y, padded, out);
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
