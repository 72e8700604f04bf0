// A weight as the kernels take it.
#pragma once

#include <cassert>

#include "backend/weight.h"
#include "kernels/kernels.h"

namespace tsq {

inline bool has_half_groups(const Weight& w) {
  return (w.shape.flags & format::kFlagHalfGroups) != 0;
}

inline bool is_stride16(const Weight& w) { return (w.shape.flags & format::kFlagStride16) != 0; }

inline kernels::ScaleKind kernel_scale_kind(const Weight& w) {
  if (w.shape.scale_kind == format::ScaleKind::per_row) return kernels::ScaleKind::per_row;
  if (w.shape.scale_kind == format::ScaleKind::per_tensor) return kernels::ScaleKind::per_tensor;
  return has_half_groups(w) ? kernels::ScaleKind::per_half_group : kernels::ScaleKind::per_group;
}

inline kernels::TernaryMatrix ternary_view(const Weight& w) {
  return {.body = w.body,
          .rows = w.shape.rows,
          .cols = format::padded_cols(w.shape.encoding, w.shape.cols),
          .stride16 = is_stride16(w),
          .scale_kind = kernel_scale_kind(w),
          .scales = w.scales.data()};
}

inline kernels::DenseMatrix dense_view(const Weight& w) {
  using format::Encoding;
  using kernels::DenseType;
  const auto type = [&] {
    switch (w.shape.encoding) {
      case Encoding::f32:
        return DenseType::f32;
      case Encoding::f16:
        return DenseType::f16;
      case Encoding::bf16:
        return DenseType::bf16;
      case Encoding::q8:
        return DenseType::q8;
      case Encoding::q4:
        return w.shape.flags & format::kFlagMinimum ? DenseType::q4m : DenseType::q4;
      case Encoding::t2:
      case Encoding::t1:
      case Encoding::s34:
        break;
    }
    assert(!"a ternary weight is no dense matrix");
    return DenseType::f32;
  }();
  return {type, w.body, format::dense_row_bytes(w.shape.encoding, w.shape.flags, w.shape.cols),
          w.shape.rows, format::padded_cols(w.shape.encoding, w.shape.cols)};
}

}  // namespace tsq
