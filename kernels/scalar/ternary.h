// The ternary kernels once, over a layout: Layout::group(w, row, group, codes) writes the 128
// codes (0, 1, 2) of a row's group and returns its scale.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/layout.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {

inline float load_f16(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return f16_to_f32(bits);
}

template <class Layout>
void ternary_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  const std::size_t groups = w.cols / kGroup;
  std::uint8_t codes[kGroup];
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    for (std::size_t c = 0; c < x.n; ++c) y.data[c * y.stride + row] = 0.0F;
    for (std::size_t g = 0; g < groups; ++g) {
      const float scale = Layout::group(w, row, g, codes);
      for (std::size_t c = 0; c < x.n; ++c) {
        const std::int8_t* q = x.q + c * x.cols + g * kGroup;
        std::int32_t dot = 0;
        for (std::size_t i = 0; i < kGroup; ++i) dot += (codes[i] - 1) * q[i];
        float& acc = y.data[c * y.stride + row];
        acc = std::fma(static_cast<float>(dot), scale * x.scale[c * groups + g], acc);
      }
    }
  }
}

template <class Layout>
void ternary_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  std::uint8_t codes[kGroup];
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    for (std::size_t c = 0; c < x.n; ++c) y.data[c * y.stride + row] = 0.0F;
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      const float scale = Layout::group(w, row, g, codes);
      for (std::size_t c = 0; c < x.n; ++c) {
        const float* in = x.data + c * x.stride + g * kGroup;
        float dot = 0.0F;
        for (std::size_t i = 0; i < kGroup; ++i) {
          dot = std::fma(static_cast<float>(codes[i] - 1), in[i], dot);
        }
        float& acc = y.data[c * y.stride + row];
        acc = std::fma(dot, scale, acc);
      }
    }
  }
}

template <class Layout>
void ternary_row(const TernaryMatrix& w, std::size_t row, float* values) {
  std::uint8_t codes[kGroup];
  for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
    const float scale = Layout::group(w, row, g, codes);
    for (std::size_t i = 0; i < kGroup; ++i) {
      values[g * kGroup + i] = static_cast<float>(codes[i] - 1) * scale;
    }
  }
}

}  // namespace tsq::kernels::scalar
