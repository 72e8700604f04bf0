// The element-wise kernels that are the same for any vector of floats.
//
// Order: element i of a sum of squares goes to lane i mod 16, ascending; the zeros behind the last
// element leave a lane as it is.
#pragma once

#include "kernels/x86/vectors.h"

namespace tsq::kernels {
namespace {

inline void rms_norm_row(const float* x, const float* w, std::size_t n, float eps, float* y) {
  Vec sum[kLanes / kWidth];
  for (Vec& lanes : sum) lanes = zeros();
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    unroll<kLanes / kWidth>([&](auto k) {
      const Vec v = load(x + i + k.value * kWidth);
      sum[k.value] = fma(v, v, sum[k.value]);
    });
  }
  unroll<kLanes / kWidth>([&](auto k) {
    const std::size_t rest = i + k.value * kWidth;
    if (rest >= n) return;
    const Vec v = load_first(x + rest, n - rest);
    sum[k.value] = fma(v, v, sum[k.value]);
  });
  const float mean = reduce_lanes(sum) / static_cast<float>(n);
  const Vec inv = broadcast(1.0F / __builtin_sqrtf(mean + eps));
  for_vectors(n, [&](std::size_t at, auto lanes) {
    store(y + at, lanes, mul(mul(load(x + at, lanes), inv), load(w + at, lanes)));
  });
}

inline void silu_mul_row(const float* gate, const float* up, std::size_t n, float* y) {
  for_vectors(n, [&](std::size_t i, auto lanes) {
    const Vec v = load(gate + i, lanes);
    const Vec silu = div(v, add(broadcast(1.0F), exp_f32(negate(v))));
    store(y + i, lanes, mul(silu, load(up + i, lanes)));
  });
}

inline void sigmoid_mul_row(const float* gate, const float* x, std::size_t n, float* y) {
  for_vectors(n, [&](std::size_t i, auto lanes) {
    const Vec e = exp_f32(negate(load(gate + i, lanes)));
    store(y + i, lanes, div(load(x + i, lanes), add(broadcast(1.0F), e)));
  });
}

inline void exp_row(const float* x, std::size_t n, float* y) {
  for_vectors(n,
              [&](std::size_t i, auto lanes) { store(y + i, lanes, exp_f32(load(x + i, lanes))); });
}

}  // namespace
}  // namespace tsq::kernels
