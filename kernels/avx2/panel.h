// y = W x for two columns or more: up to five groups of 32 rows are decoded to one byte a code,
// which stay in L1 (20 KiB) while tiles of columns pass over them.
//
// Layout: codes[group][input / 4][row][input % 4], so a vector is one dword of 8 rows and meets
// four inputs of a column, broadcast: no sum across lanes.
// Overflow: a 16-bit lane gets 32 pairs of at most 2 * 2 * 127 a group: 16256 < 2^15.
// Order: one fma a group or half group, ascending, or one int32 a row; between panels the sums rest
// in y.
// Registers for N = 4, of 16: sums 8, codes 2, x 1, product 1; the float sums wait in memory.
#pragma once

#include "kernels/avx2/scales.h"

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
  std::size_t rows;  // from the block's first to the matrix' last

  __m256i mask(int quarter) const {
    const std::size_t before = static_cast<std::size_t>(quarter) * kWidth;
    return first_lanes(rows > before ? rows - before : 0);
  }
  __m256 load(std::size_t column, int quarter) const {
    return _mm256_maskload_ps(data + column * stride + quarter * kWidth, mask(quarter));
  }
  void store(std::size_t column, int quarter, __m256 v) const {
    _mm256_maskstore_ps(data + column * stride + quarter * kWidth, mask(quarter), v);
  }
};

inline BlockOutputs block_outputs(const TernaryMatrix& w, std::size_t block, Outputs y) {
  const std::size_t row = block * kRowBlock;
  return {y.data + row, y.stride, w.rows - row};
}

// N columns by the 16 rows of quarters `quarter` and `quarter` + 1.
template <class P, int N>
void tile(const Panel& panel, int quarter, std::size_t first, std::size_t groups, const Q8Matrix& x,
          std::size_t column, const BlockOutputs& y) {
  using Sum = typename P::Sum;
  const std::size_t x_groups = x.cols / kGroup;
  typename Sum::Vector acc[N][2];
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      acc[c][h] = Sum::from_y(first == 0 ? _mm256_setzero_ps() : y.load(column + c, quarter + h));
    }
  }
  for (std::size_t i = 0; i < groups * P::kParts; ++i) {
    const std::size_t g = i / P::kParts;
    const std::size_t part = i % P::kParts;
    constexpr std::size_t kDwords = kGroup / 4 / P::kParts;
    const std::size_t x_first = column * x_groups + first + g;  // of column 0 of the tile
    __m256i sum[N][2];
    for (int c = 0; c < N; ++c) sum[c][0] = sum[c][1] = _mm256_setzero_si256();
    for (std::size_t k = part * kDwords; k < (part + 1) * kDwords; ++k) {
      const std::uint8_t* codes = panel.codes[g][k] + quarter * 32;
      const __m256i w0 = load(codes);
      const __m256i w1 = load(codes + 32);
      for (int c = 0; c < N; ++c) {
        const __m256i xs = broadcast4(x.q + x_first * kGroup + c * x.cols + 4 * k);
        sum[c][0] = dot2(sum[c][0], w0, xs);
        sum[c][1] = dot2(sum[c][1], w1, xs);
      }
    }
    for (int c = 0; c < N; ++c) {
      const std::size_t x_group = x_first + c * x_groups;
      const __m256i minus = _mm256_set1_epi32(part_sum<P::kParts>(x, x_group, part));
      const __m256 x_scale = _mm256_set1_ps(x.scale[x_group]);
      for (int h = 0; h < 2; ++h) {
        const __m256i dot = _mm256_sub_epi32(widen(sum[c][h]), minus);
        const __m256 w_scale = _mm256_load_ps(panel.scales[i] + (quarter + h) * kWidth);
        acc[c][h] = Sum::join(acc[c][h], dot, w_scale, x_scale);
      }
    }
  }
  const bool last = first + groups == x_groups;
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      const __m256 w_scale = _mm256_load_ps(panel.scales[0] + (quarter + h) * kWidth);
      y.store(column + c, quarter + h,
              last ? Sum::total(acc[c][h], w_scale, x, column + c) : Sum::to_y(acc[c][h]));
    }
  }
}

// With f32 activations: one fma chain a row, the weight from its code by a table in a register.
template <class P, int N>
void tile(const Panel& panel, int quarter, std::size_t first, std::size_t groups,
          const F32Matrix& x, std::size_t column, const BlockOutputs& y) {
  const __m256 weights = _mm256_setr_ps(-1.0F, 0.0F, 1.0F, 2.0F, 0.0F, 0.0F, 0.0F, 0.0F);
  __m256 acc[N][2];
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) {
      acc[c][h] = first == 0 ? _mm256_setzero_ps() : y.load(column + c, quarter + h);
    }
  }
  for (std::size_t i = 0; i < groups * P::kParts; ++i) {
    const std::size_t g = i / P::kParts;
    const std::size_t part = i % P::kParts;
    constexpr std::size_t kDwords = kGroup / 4 / P::kParts;
    __m256 dot[N][2];
    for (int c = 0; c < N; ++c) dot[c][0] = dot[c][1] = _mm256_setzero_ps();
    for (std::size_t k = part * kDwords; k < (part + 1) * kDwords; ++k) {
      const std::uint8_t* at = panel.codes[g][k] + quarter * 32;
      __m256i codes[2] = {load(at), load(at + 32)};
      const float* in = x.data + column * x.stride + (first + g) * kGroup + 4 * k;
      for (int j = 0; j < 4; ++j) {
        __m256 w[2];
        for (int h = 0; h < 2; ++h) {
          w[h] = _mm256_permutevar8x32_ps(weights, codes[h]);  // a lane's low three bits choose
          codes[h] = _mm256_srli_epi32(codes[h], 8);
        }
        for (int c = 0; c < N; ++c) {
          const __m256 xs = _mm256_set1_ps(in[c * x.stride + j]);
          for (int h = 0; h < 2; ++h) dot[c][h] = _mm256_fmadd_ps(w[h], xs, dot[c][h]);
        }
      }
    }
    for (int c = 0; c < N; ++c) {
      for (int h = 0; h < 2; ++h) {
        const __m256 scale = _mm256_load_ps(panel.scales[i] + (quarter + h) * kWidth);
        acc[c][h] = _mm256_fmadd_ps(dot[c][h], scale, acc[c][h]);
      }
    }
  }
  for (int c = 0; c < N; ++c) {
    for (int h = 0; h < 2; ++h) y.store(column + c, quarter + h, acc[c][h]);
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
      for (int q = 0; q < kQuarters; q += 2) {
        std::size_t c = 0;
        for (; c + 4 <= x.n; c += 4) tile<P, 4>(panel, q, first, groups, x, c, out);
        for (; c + 2 <= x.n; c += 2) tile<P, 2>(panel, q, first, groups, x, c, out);
        for (; c < x.n; ++c) tile<P, 1>(panel, q, first, groups, x, c, out);
      }
    }
  }
}

}  // namespace
}  // namespace tsq::kernels
