// What the two halves of a ternary product by several columns hand over: an encoding decodes a
// panel, the tiles of tiles.h multiply it. Plain data: each level has its own functions on it.
#pragma once

#include "kernels/kernels.h"
#include "kernels/layout.h"

namespace tsq::kernels {

inline constexpr std::size_t kPanelGroups = 5;  // a full super-block of t1
inline constexpr std::size_t kMaxParts = 2;     // of a group that have scales of their own

// Up to five groups of 32 rows, one byte a code: codes[group][input / 4][row][input % 4]. A vector
// of it is one dword of kWidth rows and meets four inputs of a column, broadcast: no sum across
// lanes. 20 KiB of codes, which stay in L1.
struct Panel {
  alignas(64) std::uint8_t codes[kPanelGroups][kGroup / 4][4 * kRowBlock];
  alignas(64) float scales[kPanelGroups * kMaxParts][kRowBlock];
};

// The outputs of one row block: 32 rows of some columns, fewer where the matrix ends.
struct BlockOutputs {
  float* data;
  std::size_t stride;
  std::size_t rows;  // from the block's first to the matrix' last
};

// y += panel x for the groups [first, first + groups) of all columns. Between panels the sums rest
// in y; the matrix' first panel starts them, the last one finishes them.
template <class X>
using PanelFn = void(const Panel& panel, std::size_t first, std::size_t groups, const X& x,
                     const BlockOutputs& y) noexcept;

}  // namespace tsq::kernels
