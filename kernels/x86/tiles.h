// A panel times tiles of columns: N columns by two vectors of rows in registers. A level's dot.h
// comes before.
//
// A tile reads its columns dword by dword, four inputs of each, from where Q8Matrix::tiles has them
// so; columns without such a copy are copied here, once a panel.
// Overflow: a 16-bit sum starts at most at 128 * 127 from 0 and gets 32 pairs of at most 2 * 2 *
// 127 a group: 32512 < 2^15. Order: one fma a group or half group, ascending, or one int32 a row.
// Registers for N = 6, of 16: sums 12, codes 2, x 1, product 1; for N = 10, of 32: 20, 2, 1.
#pragma once

#include "kernels/x86/scales.h"

namespace tsq::kernels {
namespace {

constexpr int kTileVectors = 2;
constexpr std::size_t kUnroll = 4;  // dwords

// N columns of a panel's inputs.
template <int N>
struct TileColumns {
  const std::int8_t* q;  // [input / 4][column][4]
  std::size_t column;    // the first one's
  // What sums start from: minus the sum of a part's activations, as codes are weight + 1.
  std::int32_t start[N][kPanelGroups * kMaxParts];
  float scale[N][kPanelGroups];
};

// Along the groups of a column, as they lie in x: it is done for every panel anew.
template <int kParts, int N>
void start_columns(const Q8Matrix& x, const PanelGroups& groups, TileColumns<N>& to) {
  for (int c = 0; c < N; ++c) {
    const std::size_t group = (to.column + c) * (x.cols / kGroup) + groups.first;
    for (std::size_t g = 0; g < groups.count; ++g) to.scale[c][g] = x.scale[group + g];
    for (std::size_t g = 0; g < groups.count; ++g) {
      for (std::size_t part = 0; part < kParts; ++part) {
        to.start[c][g * kParts + part] = Dot::start_bits(-part_sum<kParts>(x, group + g, part));
      }
    }
  }
}

// N columns of n inputs each, `stride` apart, to [input / 4][column][4].
template <int N>
void interleave_columns(const std::int8_t* q, std::size_t stride, std::size_t n, std::int8_t* to) {
  for (std::size_t i = 0; i < n; i += 4) {
    for (int c = 0; c < N; ++c, to += 4) __builtin_memcpy(to, q + c * stride + i, 4);
  }
}

// Vector v of column c of a tile whose sums start at `sums`.
inline float* sum_of(float* sums, int c, int v) {
  return sums + static_cast<std::size_t>(c) * kRowBlock + static_cast<std::size_t>(v) * kWidth;
}

// Two vectors of rows from `vector` on.
template <int kParts, class Sum, int N>
void tile(const Panel& panel, int vector, const PanelGroups& groups, const TileColumns<N>& columns,
          const Q8Matrix& x, float* sums, const BlockOutputs& y) {
  const std::size_t column = columns.column;
  sums += static_cast<std::size_t>(vector) * kWidth;
  typename Sum::Vector acc[N][kTileVectors];
  for (int c = 0; c < N; ++c) {
    for (int v = 0; v < kTileVectors; ++v) {
      acc[c][v] = Sum::from_memory(groups.first == 0 ? zeros() : load_floats(sum_of(sums, c, v)));
    }
  }
  if (groups.end) {
    for (int c = 0; c < N; ++c) fetch(place_of(y, column + c, vector));
  }
  const std::uint8_t* codes = panel.codes[0][0] + vector * kVectorBytes;
  const std::int8_t* q = columns.q;
  for (std::size_t i = 0; i < groups.count * kParts; ++i) {
    Ints sum[N][kTileVectors];
    for (int c = 0; c < N; ++c) {
      for (int v = 0; v < kTileVectors; ++v) sum[c][v] = set_ints(columns.start[c][i]);
    }
#pragma GCC unroll 1
    for (std::size_t k = 0; k < kGroup / 4 / kParts; k += kUnroll) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kUnroll; ++j, codes += kPlane, q += 4 * N) {
        const Ints low = load_aligned(codes);
        const Ints high = load_aligned(codes + kVectorBytes);
        for (int c = 0; c < N; ++c) {
          const Ints xs = broadcast4(q + 4 * c);
          sum[c][0] = Dot::add(sum[c][0], low, xs);
          sum[c][1] = Dot::add(sum[c][1], high, xs);
        }
      }
    }
    for (int v = 0; v < kTileVectors; ++v) {
      const Floats w_scale =
          load_floats(panel.scales[i] + static_cast<std::size_t>(vector + v) * kWidth);
      for (int c = 0; c < N; ++c) {
        acc[c][v] = Sum::join(acc[c][v], Dot::total(sum[c][v]), w_scale,
                              set_floats(columns.scale[c][i / kParts]));
      }
    }
  }
  for (int v = 0; v < kTileVectors; ++v) {
    const Floats w_scale =
        load_floats(panel.scales[0] + static_cast<std::size_t>(vector + v) * kWidth);
    for (int c = 0; c < N; ++c) {
      if (groups.end) {
        store_outputs(y, column + c, vector + v, Sum::total(acc[c][v], w_scale, x, column + c));
      } else {
        store_floats(sum_of(sums, c, v), Sum::to_memory(acc[c][v]));
      }
    }
  }
}

// As many tiles of N columns as fit from `column` on; the column where they end.
template <int kParts, class Sum, int N>
std::size_t tiles(const Panel& panel, const PanelGroups& groups, const Q8Matrix& x,
                  std::size_t column, const PanelColumns& all, const BlockOutputs& y) {
  alignas(64) std::int8_t copy[kPanelGroups * kGroup * N];
  const bool as_tiles = N == kTileColumns && x.tiles != nullptr;
  for (; column + N <= all.last; column += N) {
    TileColumns<N> columns;
    columns.q = copy;
    columns.column = column;
    if (as_tiles) {
      columns.q = x.tiles + column * x.cols + groups.first * kGroup * N;
    } else {
      interleave_columns<N>(x.q + column * x.cols + groups.first * kGroup, x.cols,
                            groups.count * kGroup, copy);
    }
    start_columns<kParts, N>(x, groups, columns);
    for (int v = 0; v < kVectors; v += kTileVectors) {
      tile<kParts, Sum, N>(panel, v, groups, columns, x, all.sum(column), y);
    }
  }
  return column;
}

template <int kParts, class Sum>
void multiply_panel(const Panel& panel, const PanelGroups& groups, const Q8Matrix& x,
                    const PanelColumns& all, const BlockOutputs& y) {
  static_assert(PanelColumns::kMost % kTileColumns == 0);
  std::size_t c = tiles<kParts, Sum, kTileColumns>(panel, groups, x, all.first, all, y);
  if constexpr (kTileColumns > 6) c = tiles<kParts, Sum, 6>(panel, groups, x, c, all, y);
  c = tiles<kParts, Sum, 4>(panel, groups, x, c, all, y);
  c = tiles<kParts, Sum, 3>(panel, groups, x, c, all, y);
  c = tiles<kParts, Sum, 2>(panel, groups, x, c, all, y);
  tiles<kParts, Sum, 1>(panel, groups, x, c, all, y);
}

// With f32 activations: one fma chain a row, the weight from its code by a table in a register.
template <int kParts, int N>
void tile(const Panel& panel, int vector, const PanelGroups& groups, const F32Matrix& x,
          std::size_t column, float* sums, const BlockOutputs& y) {
  sums += static_cast<std::size_t>(vector) * kWidth;
  Floats acc[N][kTileVectors];
  for (int c = 0; c < N; ++c) {
    for (int v = 0; v < kTileVectors; ++v) {
      acc[c][v] = groups.first == 0 ? zeros() : load_floats(sum_of(sums, c, v));
    }
  }
  const std::uint8_t* codes = panel.codes[0][0] + vector * kVectorBytes;
  const float* in = x.data + column * x.stride + groups.first * kGroup;
  for (std::size_t i = 0; i < groups.count * kParts; ++i) {
    Floats dot[N][kTileVectors];
    for (int c = 0; c < N; ++c) dot[c][0] = dot[c][1] = zeros();
    for (std::size_t k = 0; k < kGroup / 4 / kParts; ++k, codes += kPlane, in += 4) {
      Ints left[kTileVectors] = {load_aligned(codes), load_aligned(codes + kVectorBytes)};
      for (int j = 0; j < 4; ++j) {
        const Floats weights[kTileVectors] = {weights_of(left[0]), weights_of(left[1])};
        left[0] = next_byte(left[0]);
        left[1] = next_byte(left[1]);
        for (int c = 0; c < N; ++c) {
          const Floats xs = set_floats(in[c * x.stride + j]);
          for (int v = 0; v < kTileVectors; ++v) dot[c][v] = fma(weights[v], xs, dot[c][v]);
        }
      }
    }
    for (int v = 0; v < kTileVectors; ++v) {
      const Floats scale =
          load_floats(panel.scales[i] + static_cast<std::size_t>(vector + v) * kWidth);
      for (int c = 0; c < N; ++c) acc[c][v] = fma(dot[c][v], scale, acc[c][v]);
    }
  }
  for (int c = 0; c < N; ++c) {
    for (int v = 0; v < kTileVectors; ++v) {
      if (groups.end) {
        store_outputs(y, column + c, vector + v, acc[c][v]);
      } else {
        store_floats(sum_of(sums, c, v), acc[c][v]);
      }
    }
  }
}

template <int kParts, int N>
std::size_t tiles(const Panel& panel, const PanelGroups& groups, const F32Matrix& x,
                  std::size_t column, const PanelColumns& all, const BlockOutputs& y) {
  for (; column + N <= all.last; column += N) {
    for (int v = 0; v < kVectors; v += kTileVectors) {
      tile<kParts, N>(panel, v, groups, x, column, all.sum(column), y);
    }
  }
  return column;
}

template <int kParts>
void multiply_panel(const Panel& panel, const PanelGroups& groups, const F32Matrix& x,
                    const PanelColumns& all, const BlockOutputs& y) {
  std::size_t c = tiles<kParts, 4>(panel, groups, x, all.first, all, y);
  c = tiles<kParts, 2>(panel, groups, x, c, all, y);
  tiles<kParts, 1>(panel, groups, x, c, all, y);
}

}  // namespace
}  // namespace tsq::kernels
