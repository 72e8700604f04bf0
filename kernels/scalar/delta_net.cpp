// Gated DeltaNet, the reference: its convolution, norms, gates and recurrence.
#include <cmath>

#include "kernels/isa.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {
namespace {

float dot(const float* a, const float* b, std::size_t n) {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % kLanes] = std::fma(a[i], b[i], lanes[i % kLanes]);
  return reduce_lanes(lanes);
}

}  // namespace

void l2_norm(const float* x, std::size_t n, float eps, float scale, float* y) noexcept {
  const float inv = 1.0F / std::sqrt(dot(x, x, n) + eps);
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * inv * scale;
}

void causal_conv(const CausalConv& conv, std::size_t first, std::size_t last) noexcept {
  for (std::size_t c = first; c < last; ++c) {
    float* const history = conv.history + c;
    for (std::size_t t = 0; t < conv.n; ++t) {
      float& x = conv.x[t * conv.stride + c];
      const float inputs[kConvTaps] = {history[0], history[conv.history_stride],
                                       history[2 * conv.history_stride], x};
      float sum = conv.weights[c] * inputs[0];
      for (std::size_t tap = 1; tap < kConvTaps; ++tap) {
        sum = std::fma(conv.weights[tap * conv.weight_stride + c], inputs[tap], sum);
        history[(tap - 1) * conv.history_stride] = inputs[tap];
      }
      x = sum / (1.0F + exp_f32(-sum));
    }
  }
}

void delta_gates(const float* a, const float* b, const float* rate, const float* bias,
                 std::size_t n, float* decay, float* beta) noexcept {
  for (std::size_t h = 0; h < n; ++h) {
    decay[h] = exp_f32(rate[h] * softplus_f32(a[h] + bias[h]));
    beta[h] = 1.0F / (1.0F + exp_f32(-b[h]));
  }
}

void delta_net(const DeltaHead& head, RowRange rows) noexcept {
  for (std::size_t i = rows.first; i < rows.last; ++i) {
    float* const s = head.state + i * head.key_dim;
    for (std::size_t t = 0; t < head.n; ++t) {
      const float* const q = head.q + t * head.stride;
      const float* const k = head.k + t * head.stride;
      const float decay = head.decay[t * head.gate_stride];
      for (std::size_t j = 0; j < head.key_dim; ++j) s[j] *= decay;
      const float error = head.v[t * head.stride + i] - dot(s, k, head.key_dim);
      const float d = head.beta[t * head.gate_stride] * error;
      for (std::size_t j = 0; j < head.key_dim; ++j) s[j] = std::fma(d, k[j], s[j]);
      head.out[t * head.out_stride + i] = dot(s, q, head.key_dim);
    }
  }
}

}  // namespace tsq::kernels::scalar
