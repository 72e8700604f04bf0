// The kernels of t2, t1 and s34 with f32 activations, on a level that has panels of them.
#pragma once

#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels {
namespace {

template <template <class> class Layout>
void ternary_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  switch (w.scale_kind) {
    case ScaleKind::per_group:
      return panel_gemm<Layout<Scales<1>>>(w, rows, x, y, level::panel_f32);
    case ScaleKind::per_half_group:
      if constexpr (Layout<Scales<1>>::kHalfGroups) {
        panel_gemm<Layout<Scales<2>>>(w, rows, x, y, level::panel_half_groups_f32);
      }
      return;
    case ScaleKind::per_row:
    case ScaleKind::per_tensor:
      return panel_gemm<Layout<Scales<0>>>(w, rows, x, y, level::panel_f32);
  }
}

}  // namespace
}  // namespace tsq::kernels
