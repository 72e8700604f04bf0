// What the two halves of a ternary product by several columns hand over: an encoding decodes a
// panel, the tiles of tiles.h multiply it. Plain data: each level has its own functions on it.
#pragma once

#include "kernels/kernels.h"
#include "kernels/layout.h"

namespace tsq::kernels {

inline constexpr std::size_t kPanelGroups = 10;  // two full super-blocks of t1
inline constexpr std::size_t kMaxParts = 2;      // of a group that have scales of their own

// Up to ten groups of 32 rows, one byte a code: codes[group][input / 4][row][input % 4]. A vector
// of it is one dword of kWidth rows and meets four inputs of a column, broadcast: no sum across
// lanes. 40 KiB of codes, which the tiles read in order from L2.
struct Panel {
  alignas(64) std::uint8_t codes[kPanelGroups][kGroup / 4][kPlane];
  alignas(64) float scales[kPanelGroups * kMaxParts][kRowBlock];
};

// The outputs of one row block: 32 rows of some columns, fewer where the matrix ends.
struct BlockOutputs {
  float* data;
  std::size_t stride;
  std::size_t rows;  // from the block's first to the matrix' last
};

// Columns [first, last) of x, and where their sums rest between panels: side by side, where y has
// them a whole matrix' rows apart and they take each other's place in the caches.
struct PanelColumns {
  static constexpr std::size_t kMost = 270;  // a multiple of every kTileColumns

  std::size_t first, last;
  float* sums;  // [column - first][kRowBlock]

  float* sum(std::size_t column) const { return sums + (column - first) * kRowBlock; }
};

// Which groups of its rows a panel holds.
struct PanelGroups {
  std::size_t first, count;
  bool end;  // the last of the rows
};

// y += panel x for some columns. The first panel of the rows starts the sums, the last one finishes
// them and writes y.
template <class X>
using PanelFn = void(const Panel& panel, const PanelGroups& groups, const X& x,
                     const PanelColumns& columns, const BlockOutputs& y) noexcept;

}  // namespace tsq::kernels
