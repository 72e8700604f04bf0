// Gated DeltaNet from a level's vectors, which come before: Vector holds kWidth floats;
// load_floats, store_floats, broadcast, mul, fmadd(a, b, c) = a b + c, silu; reduce(sums) is the
// tree of 16 lanes; kDeltaRows: rows of a state that are taken together.
//
// Trick: a tile of rows goes through all tokens of the run before the next one: in registers where
// a row of 128 has 8 of 32 (AVX-512), in 2 KiB of L1 where it has 16 of 16 (AVX2).
// Order: element j of a dot goes to lane j mod 16, ascending, as everywhere.
#pragma once

#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kParts = kLanes / kWidth;  // vectors of 16 lanes

// R rows of N vectors.
template <std::size_t R, std::size_t N>
void delta_tile(const DeltaHead& head, std::size_t row) {
  float* const state = head.state + row * head.key_dim;
  Vector s[R][N];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t j = 0; j < N; ++j)
      s[r][j] = load_floats(state + r * head.key_dim + j * kWidth);
  }
  for (std::size_t t = 0; t < head.n; ++t) {
    const float* const q = head.q + t * head.stride;
    const float* const k = head.k + t * head.stride;
    const float* const v = head.v + t * head.stride + row;
    const Vector decay = broadcast(head.decay[t * head.gate_stride]);
    Vector sums[R][kParts];
    for (auto& sum : sums) {
      for (Vector& part : sum) part = broadcast(0.0F);
    }
    for (std::size_t j = 0; j < N; ++j) {
      const Vector kj = load_floats(k + j * kWidth);
      for (std::size_t r = 0; r < R; ++r) {
        s[r][j] = mul(s[r][j], decay);
        sums[r][j % kParts] = fmadd(s[r][j], kj, sums[r][j % kParts]);
      }
    }
    Vector d[R];
    for (std::size_t r = 0; r < R; ++r) {
      d[r] = broadcast(head.beta[t * head.gate_stride] * (v[r] - reduce(sums[r])));
      for (Vector& part : sums[r]) part = broadcast(0.0F);
    }
    for (std::size_t j = 0; j < N; ++j) {
      const Vector kj = load_floats(k + j * kWidth);
      const Vector qj = load_floats(q + j * kWidth);
      for (std::size_t r = 0; r < R; ++r) {
        s[r][j] = fmadd(d[r], kj, s[r][j]);
        sums[r][j % kParts] = fmadd(s[r][j], qj, sums[r][j % kParts]);
      }
    }
    float* const out = head.out + t * head.out_stride + row;
    for (std::size_t r = 0; r < R; ++r) out[r] = reduce(sums[r]);
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t j = 0; j < N; ++j)
      store_floats(state + r * head.key_dim + j * kWidth, s[r][j]);
  }
}

template <std::size_t KeyDim>
void delta_rows(const DeltaHead& head, RowRange rows) {
  std::size_t i = rows.first;
  for (; i + kDeltaRows <= rows.last; i += kDeltaRows) {
    delta_tile<kDeltaRows, KeyDim / kWidth>(head, i);
  }
  for (; i < rows.last; ++i) delta_tile<1, KeyDim / kWidth>(head, i);
}

// The widths that models have; scalar does the others.
inline void delta_net_of_vectors(const DeltaHead& head, RowRange rows) {
  switch (head.key_dim) {
    case 32:
      return delta_rows<32>(head, rows);
    case 64:
      return delta_rows<64>(head, rows);
    case 128:
      return delta_rows<128>(head, rows);
    default:
      return scalar::delta_net(head, rows);
  }
}

inline void l2_norm_of_vectors(const float* x, std::size_t n, float eps, float scale, float* y) {
  Vector sum[kParts];
  for (Vector& part : sum) part = broadcast(0.0F);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const Vector v = load_floats(x + i);
    sum[i / kWidth % kParts] = fmadd(v, v, sum[i / kWidth % kParts]);
  }
  const Vector inv = broadcast(1.0F / __builtin_sqrtf(reduce(sum) + eps));
  for (std::size_t i = 0; i < n; i += kWidth) {
    store_floats(y + i, mul(mul(load_floats(x + i), inv), broadcast(scale)));
  }
}

// Weights and history of a vector of channels stay in registers while the tokens pass.
inline void causal_conv_of_vectors(const CausalConv& conv, std::size_t first, std::size_t last) {
  std::size_t c = first;
  for (; c + kWidth <= last; c += kWidth) {
    Vector w[kConvTaps];
    Vector before[kConvTaps - 1];
    for (std::size_t i = 0; i < kConvTaps; ++i) {
      w[i] = load_floats(conv.weights + i * conv.weight_stride + c);
    }
    for (std::size_t i = 0; i + 1 < kConvTaps; ++i) {
      before[i] = load_floats(conv.history + i * conv.history_stride + c);
    }
    for (std::size_t t = 0; t < conv.n; ++t) {
      float* const x = conv.x + t * conv.stride + c;
      const Vector newest = load_floats(x);
      Vector sum = mul(w[0], before[0]);
      sum = fmadd(w[1], before[1], sum);
      sum = fmadd(w[2], before[2], sum);
      sum = fmadd(w[3], newest, sum);
      store_floats(x, silu(sum));
      before[0] = before[1];
      before[1] = before[2];
      before[2] = newest;
    }
    for (std::size_t i = 0; i + 1 < kConvTaps; ++i) {
      store_floats(conv.history + i * conv.history_stride + c, before[i]);
    }
  }
  scalar::causal_conv(conv, c, last);
}

}  // namespace
}  // namespace tsq::kernels
