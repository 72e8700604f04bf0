// The ternary kernels once, over a layout: Layout::group(w, row, group, codes) writes the 128
// codes (0, 1, 2) of a row's group and returns where its fp16 scale lies, if there are lines.
#pragma once

#include <bit>
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

// Parts of a group that have scales of their own.
inline std::size_t parts_of(const TernaryMatrix& w) {
  return w.scale_kind == ScaleKind::per_half_group ? 2 : 1;
}

inline float weight_scale(const TernaryMatrix& w, std::size_t row, const std::byte* line,
                          std::size_t part) {
  if (w.scale_kind == ScaleKind::per_row) return w.scales[row];
  if (w.scale_kind == ScaleKind::per_tensor) return w.scales[0];
  return load_f16(line + part * kScaleLine);
}

inline std::int32_t dot(const std::uint8_t* codes, const std::int8_t* q, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (codes[i] - 1) * q[i];
  return sum;
}

// One int32 a row; its bits rest in y while it grows.
template <class Layout>
void ternary_gemm_whole_rows(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  std::uint8_t codes[kGroup];
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    for (std::size_t c = 0; c < x.n; ++c) y.data[c * y.stride + row] = std::bit_cast<float>(0);
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      Layout::group(w, row, g, codes);
      for (std::size_t c = 0; c < x.n; ++c) {
        float& bits = y.data[c * y.stride + row];
        const auto sum = std::bit_cast<std::int32_t>(bits);
        bits = std::bit_cast<float>(sum + dot(codes, x.q + c * x.cols + g * kGroup, kGroup));
      }
    }
    const float scale = weight_scale(w, row, nullptr, 0);
    for (std::size_t c = 0; c < x.n; ++c) {
      float& out = y.data[c * y.stride + row];
      out = static_cast<float>(std::bit_cast<std::int32_t>(out)) * (scale / x.token_scale[c]);
    }
  }
}

template <class Layout>
void ternary_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  if (scale_lines(w.scale_kind) == 0 && x.token_scale != nullptr) {
    return ternary_gemm_whole_rows<Layout>(w, rows, x, y);
  }
  const std::size_t groups = w.cols / kGroup;
  const std::size_t width = kGroup / parts_of(w);
  std::uint8_t codes[kGroup];
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    for (std::size_t c = 0; c < x.n; ++c) y.data[c * y.stride + row] = 0.0F;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::byte* line = Layout::group(w, row, g, codes);
      for (std::size_t i = 0; i < kGroup; i += width) {
        const float scale = weight_scale(w, row, line, i / width);
        for (std::size_t c = 0; c < x.n; ++c) {
          const std::int32_t sum = dot(codes + i, x.q + c * x.cols + g * kGroup + i, width);
          float& acc = y.data[c * y.stride + row];
          acc = std::fma(static_cast<float>(sum), scale * x.scale[c * groups + g], acc);
        }
      }
    }
  }
}

template <class Layout>
void ternary_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  const std::size_t width = kGroup / parts_of(w);
  std::uint8_t codes[kGroup];
  for (std::size_t row = rows.first; row < rows.last; ++row) {
    for (std::size_t c = 0; c < x.n; ++c) y.data[c * y.stride + row] = 0.0F;
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      const std::byte* line = Layout::group(w, row, g, codes);
      for (std::size_t first = 0; first < kGroup; first += width) {
        const float scale = weight_scale(w, row, line, first / width);
        for (std::size_t c = 0; c < x.n; ++c) {
          const float* in = x.data + c * x.stride + g * kGroup;
          float sum = 0.0F;
          for (std::size_t i = first; i < first + width; ++i) {
            sum = std::fma(static_cast<float>(codes[i] - 1), in[i], sum);
          }
          float& acc = y.data[c * y.stride + row];
          acc = std::fma(sum, scale, acc);
        }
      }
    }
  }
}

template <class Layout>
void ternary_row(const TernaryMatrix& w, std::size_t row, float* values) {
  const std::size_t width = kGroup / parts_of(w);
  std::uint8_t codes[kGroup];
  for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
    const std::byte* line = Layout::group(w, row, g, codes);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float scale = weight_scale(w, row, line, i / width);
      values[g * kGroup + i] = static_cast<float>(codes[i] - 1) * scale;
    }
  }
}

}  // namespace tsq::kernels::scalar
