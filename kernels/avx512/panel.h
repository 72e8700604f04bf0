// y = W x for two columns or more: up to five groups of 32 rows are decoded to one byte a code,
// which stay in L1 (20 KiB) while tiles of columns pass over them.
//
// Layout: codes[group][input / 4][row][input % 4], so a vector is one dword of 16 rows and meets
// four inputs of a column, broadcast: no sum across lanes.
// Overflow: |dot| <= 128 * 2 * 127 + |sum|.
// Order: one fma a group or half group, ascending, or one int32 a row; between panels the sums rest
// in y.
// Registers for N = 8, of 32: dots 16, codes 2, x 1; the float sums wait in memory.
#pragma once

#include "kernels/avx512/scales.h"

namespace tsq::kernels {
namespace {

constexpr std::size_t kPanelGroups = kT1Super;
constexpr std::size_t kMaxParts = 2;  // of a group that have scales of their own

struct Panel {
  alignas(64) std::uint8_t codes[kPanelGroups][kGroup / 4][kPlane];
  alignas(64) float scales[kPanelGroups * kMaxParts][kRowBlock];
};

// The outputs of one row block: 32 rows of some columns, fewer where the matrix ends.
struct BlockOutputs {
  float* data;
  std::size_t stride;
  __mmask16 rows[2];

  __m512 load(std::size_t column, int half) const {
    return _mm512_maskz_loadu_ps(rows[half], data + column * stride + half * kWidth);
  }
  void store(std::size_t column, int half, __m512 v) const {
    _mm512_mask_storeu_ps(data + column * stride + half * kWidth, rows[half], v);
  }
};

inline BlockOutputs block_outputs(const TernaryMatrix& w, std::size_t block, Outputs y) {
  const std::size_t row = block * kRowBlock;
  const std::size_t left = w.rows - row;
  return {y.data + row,
          y.stride,
          {first_lanes(left), left > kWidth ? first_lanes(left - kWidth) : __mmask16{0}}};
}

template <class P, int N>
void tile(const Panel& panel, std::size_t first, std::size_t groups, const Q8Matrix& x,
          std::size_t column, const BlockOutputs& y) {
  using Sum = typename P::Sum;
  const std::size_t x_groups = x.cols / kGroup;
  typename Sum::Vector acc[N][2];
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      acc[c][h] = Sum::from_y(first == 0 ? _mm512_setzero_ps() : y.load(column + c, h));
    }
  }
  for (std::size_t i = 0; i < groups * P::kParts; ++i) {
    const std::size_t g = i / P::kParts;
    const std::size_t part = i % P::kParts;
    constexpr std::size_t kDwords = kGroup / 4 / P::kParts;
    const std::size_t x_first = column * x_groups + first + g;  // of column 0 of the tile
    __m512i dot[N][2];
    for (int c = 0; c < N; ++c) {
      const std::int32_t sum = part_sum<P::kParts>(x, x_first + c * x_groups, part);
      dot[c][0] = dot[c][1] = _mm512_set1_epi32(-sum);
    }
    for (std::size_t k = part * kDwords; k < (part + 1) * kDwords; ++k) {
      const __m512i w0 = load(panel.codes[g][k]);
      const __m512i w1 = load(panel.codes[g][k] + 64);
      for (int c = 0; c < N; ++c) {
        const __m512i xs = broadcast4(x.q + x_first * kGroup + c * x.cols + 4 * k);
        dot[c][0] = dot4(dot[c][0], w0, xs);
        dot[c][1] = dot4(dot[c][1], w1, xs);
      }
    }
    for (int c = 0; c < N; ++c) {
      const __m512 x_scale = _mm512_set1_ps(x.scale[x_first + c * x_groups]);
      for (int h = 0; h < 2; ++h) {
        const __m512 w_scale = _mm512_load_ps(panel.scales[i] + h * kWidth);
        acc[c][h] = Sum::join(acc[c][h], dot[c][h], w_scale, x_scale);
      }
    }
  }
  const bool last = first + groups == x_groups;
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      const __m512 w_scale = _mm512_load_ps(panel.scales[0] + h * kWidth);
      y.store(column + c, h,
              last ? Sum::total(acc[c][h], w_scale, x, column + c) : Sum::to_y(acc[c][h]));
    }
  }
}

// With f32 activations: one fma chain a row, the weight from its code by a table in a register.
template <class P, int N>
void tile(const Panel& panel, std::size_t first, std::size_t groups, const F32Matrix& x,
          std::size_t column, const BlockOutputs& y) {
  const __m512 weights = _mm512_castps128_ps512(_mm_setr_ps(-1.0F, 0.0F, 1.0F, 2.0F));
  __m512 acc[N][2];
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      acc[c][h] = first == 0 ? _mm512_setzero_ps() : y.load(column + c, h);
    }
  }
  for (std::size_t i = 0; i < groups * P::kParts; ++i) {
    const std::size_t g = i / P::kParts;
    const std::size_t part = i % P::kParts;
    constexpr std::size_t kDwords = kGroup / 4 / P::kParts;
    __m512 dot[N][2];
    for (int c = 0; c < N; ++c) dot[c][0] = dot[c][1] = _mm512_setzero_ps();
    for (std::size_t k = part * kDwords; k < (part + 1) * kDwords; ++k) {
      __m512i codes[2] = {load(panel.codes[g][k]), load(panel.codes[g][k] + 64)};
      const float* in = x.data + column * x.stride + (first + g) * kGroup + 4 * k;
      for (int j = 0; j < 4; ++j) {
        __m512 w[2];
        for (int h = 0; h < 2; ++h) {
          w[h] = _mm512_permutexvar_ps(codes[h], weights);  // the low four bits of a lane choose
          codes[h] = _mm512_srli_epi32(codes[h], 8);
        }
        for (int c = 0; c < N; ++c) {
          const __m512 xs = _mm512_set1_ps(in[c * x.stride + j]);
          for (int h = 0; h < 2; ++h) dot[c][h] = _mm512_fmadd_ps(w[h], xs, dot[c][h]);
        }
      }
    }
    for (int c = 0; c < N; ++c) {
      for (int h = 0; h < 2; ++h) {
        const __m512 scale = _mm512_load_ps(panel.scales[i] + h * kWidth);
        acc[c][h] = _mm512_fmadd_ps(dot[c][h], scale, acc[c][h]);
      }
    }
  }
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) y.store(column + c, h, acc[c][h]);
  }
}

// Layout::decode(w, block, first, groups, panel) fills a panel; X is Q8Matrix or F32Matrix.
template <class Layout, class X>
void panel_gemm(const TernaryMatrix& w, RowRange rows, const X& x, Outputs y) {
  using P = typename Layout::Scaling;
  Panel panel;
  for (std::size_t block = rows.first / kRowBlock; block * kRowBlock < rows.last; ++block) {
    const BlockOutputs out = block_outputs(w, block, y);
    for (std::size_t first = 0; first < w.cols / kGroup; first += kPanelGroups) {
      const std::size_t groups = min_size(kPanelGroups, w.cols / kGroup - first);
      Layout::decode(w, block, first, groups, panel);
      std::size_t c = 0;
      for (; c + 8 <= x.n; c += 8) tile<P, 8>(panel, first, groups, x, c, out);
      for (; c + 4 <= x.n; c += 4) tile<P, 4>(panel, first, groups, x, c, out);
      for (; c + 2 <= x.n; c += 2) tile<P, 2>(panel, first, groups, x, c, out);
      for (; c < x.n; ++c) tile<P, 1>(panel, first, groups, x, c, out);
    }
  }
}

}  // namespace
}  // namespace tsq::kernels
