// The kernels of t2, t1 and s34 from a level's panel.h, which comes before: Layout<P> is an
// encoding under the scales P (the level's scales.h). Layout::gemv<S>(w, blocks, x, y) multiplies S
// blocks by one column, Layout::decode fills a panel; kHalfGroups: it may have two scale lines.
#pragma once

#include "kernels/layout.h"

namespace tsq::kernels {
namespace {

// One column: blocks from two places of the range together, two streams that the memory serves
// better than one.
template <class Layout>
void stream_gemv(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  const std::size_t first = rows.first / kRowBlock;
  const std::size_t last = (rows.last + kRowBlock - 1) / kRowBlock;
  const std::size_t half = (last - first) / 2;
  for (std::size_t b = first; b < first + half; ++b) {
    const std::size_t blocks[2] = {b, b + half};
    Layout::template gemv<2>(w, blocks, x, y);
  }
  if ((last - first) % 2 != 0) {
    const std::size_t blocks[1] = {last - 1};
    Layout::template gemv<1>(w, blocks, x, y);
  }
}

template <class Layout>
void gemm_as(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  if (x.n == 1) {
    stream_gemv<Layout>(w, rows, x, y);
  } else {
    panel_gemm<Layout>(w, rows, x, y);
  }
}

template <template <class> class Layout>
void ternary_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) {
  switch (w.scale_kind) {
    case ScaleKind::per_group:
      return gemm_as<Layout<Scales<1>>>(w, rows, x, y);
    case ScaleKind::per_half_group:
      if constexpr (Layout<Scales<1>>::kHalfGroups) gemm_as<Layout<Scales<2>>>(w, rows, x, y);
      return;
    case ScaleKind::per_row:
    case ScaleKind::per_tensor:
      if (x.token_scale != nullptr) return gemm_as<Layout<Scales<0, WholeRow>>>(w, rows, x, y);
      return gemm_as<Layout<Scales<0>>>(w, rows, x, y);
  }
}

template <template <class> class Layout>
void ternary_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  switch (w.scale_kind) {
    case ScaleKind::per_group:
      return panel_gemm<Layout<Scales<1>>>(w, rows, x, y);
    case ScaleKind::per_half_group:
      if constexpr (Layout<Scales<1>>::kHalfGroups) panel_gemm<Layout<Scales<2>>>(w, rows, x, y);
      return;
    case ScaleKind::per_row:
    case ScaleKind::per_tensor:
      return panel_gemm<Layout<Scales<0>>>(w, rows, x, y);
  }
}

}  // namespace
}  // namespace tsq::kernels
