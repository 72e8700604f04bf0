// The kernels of t2, t1 and s34 on a level, whose dot.h comes before: Layout<P> is an encoding
// under the scales P (scales.h). Layout::gemv<S, N>(w, blocks, x, y) multiplies S blocks by up to N
// columns, N being 1 or kFewColumns; Layout::decode(w, block, first, groups, panel, to) decodes up
// to kT1Super groups as groups `to` on of a panel; kHalfGroups: it may have two scale lines.
#pragma once

#include "kernels/x86/scales.h"

namespace tsq::kernels {
namespace {

// A few columns: blocks from two places of the range together, two streams that the memory serves
// better than one.
template <class Layout, int kColumns>
void stream_gemv(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  const std::size_t first = rows.first / kRowBlock;
  const std::size_t last = (rows.last + kRowBlock - 1) / kRowBlock;
  const std::size_t half = (last - first) / 2;
  for (std::size_t b = first; b < first + half; ++b) {
    const std::size_t blocks[2] = {b, b + half};
    Layout::template gemv<2, kColumns>(w, blocks, x, y);
  }
  if ((last - first) % 2 != 0) {
    const std::size_t blocks[1] = {last - 1};
    Layout::template gemv<1, kColumns>(w, blocks, x, y);
  }
}

// Many columns, or f32: a panel at a time, so that the weights are read once.
template <class Layout, class X>
void panel_gemm(const TernaryMatrix& w, RowRange rows, const X& x, Outputs y,
                PanelFn<X>* multiply) {
  const std::size_t all = w.cols / kGroup;
  Panel panel;
  alignas(64) float sums[PanelColumns::kMost * kRowBlock];
  for (std::size_t column = 0; column < x.n; column += PanelColumns::kMost) {
    const PanelColumns columns = {column, min_size(column + PanelColumns::kMost, x.n), sums};
    for (std::size_t block = rows.first / kRowBlock; block * kRowBlock < rows.last; ++block) {
      const BlockOutputs out = block_outputs(w, block, y);
      for (std::size_t first = 0; first < all; first += kPanelGroups) {
        const std::size_t count = min_size(kPanelGroups, all - first);
        for (std::size_t at = 0; at < count; at += kT1Super) {
          Layout::decode(w, block, first + at, min_size(kT1Super, count - at), panel, at);
        }
        multiply(panel, {first, count, first + count == all}, x, columns, out);
      }
    }
  }
}

template <class Layout>
void gemm_as(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y,
             PanelFn<Q8Matrix>* multiply) {
  if (x.n == 1) {
    stream_gemv<Layout, 1>(w, rows, x, y);
  } else if (x.n <= Layout::kFewColumns) {
    stream_gemv<Layout, Layout::kFewColumns>(w, rows, x, y);
  } else {
    panel_gemm<Layout>(w, rows, x, y, multiply);
  }
}

template <template <class> class Layout>
void ternary_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  switch (w.scale_kind) {
    case ScaleKind::per_group:
      return gemm_as<Layout<Scales<1>>>(w, rows, x, y, level::panel);
    case ScaleKind::per_half_group:
      if constexpr (Layout<Scales<1>>::kHalfGroups) {
        gemm_as<Layout<Scales<2>>>(w, rows, x, y, level::panel_half_groups);
      }
      return;
    case ScaleKind::per_row:
    case ScaleKind::per_tensor:
      if (x.token_scale == nullptr) return gemm_as<Layout<Scales<0>>>(w, rows, x, y, level::panel);
      return gemm_as<Layout<Scales<0, WholeRow>>>(w, rows, x, y, level::panel_whole_rows);
  }
}

// One column alone: for forms that are made for it.
template <template <class> class Layout>
void ternary_gemv(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  if (w.scale_kind == ScaleKind::per_group) return stream_gemv<Layout<Scales<1>>, 1>(w, rows, x, y);
  if (x.token_scale == nullptr) return stream_gemv<Layout<Scales<0>>, 1>(w, rows, x, y);
  stream_gemv<Layout<Scales<0, WholeRow>>, 1>(w, rows, x, y);
}

}  // namespace
}  // namespace tsq::kernels
