// Dense rows at a level whose lanes.h and simd.h come first.
//
// Few columns: the encoded rows pass once. R rows at a time, from R places of the range, so that
// each is a stream of its own that the prefetch can follow; a row's second pass, for more columns
// than fit the registers, finds it in the L1 cache.
// Many columns: kPanelRows rows by kPanelCols inputs are decoded into a panel, which all columns of
// a chunk pass over by tiles of kTileRows by kTileColumns; their lanes rest in `sums` between
// panels.
// Order: one fma per 16 inputs, ascending, then the fixed tree, in both.
#pragma once

namespace tsq::kernels {
namespace {

constexpr std::size_t kBlock = 32;  // inputs of a q8 or q4 block
constexpr std::size_t kFewColumns = 8;
constexpr std::size_t kPanelRows = 8;
constexpr std::size_t kPanelCols = 512;  // 16 KiB decoded, half of an L1 cache
constexpr std::size_t kChunk = 48;       // columns

constexpr std::size_t block_bytes(DenseType type) {
  switch (type) {
    case DenseType::f32:
      return 4 * kBlock;
    case DenseType::f16:
    case DenseType::bf16:
      return 2 * kBlock;
    case DenseType::q8:
      return 2 + kBlock;
    case DenseType::q4:
      return 2 + kBlock / 2;
    case DenseType::q4m:
      return 4 + kBlock / 2;
  }
  return 0;
}

// What the two halves of a block share.
struct Header {
  Lanes d, m;
};
template <DenseType kType>
Header header(const std::uint8_t* block) {
  if constexpr (kType == DenseType::q8) {
    return {half_lanes(block), zero_lanes()};
  } else if constexpr (kType == DenseType::q4) {
    return {mul(half_lanes(block), all_lanes(kNibbleUnit)), zero_lanes()};
  } else if constexpr (kType == DenseType::q4m) {
    return {mul(half_lanes(block), all_lanes(kNibbleUnit)), half_lanes(block + 2)};
  } else {
    return {zero_lanes(), zero_lanes()};
  }
}

// Inputs 16 h to 16 h + 15 of a block.
template <DenseType kType, int h>
Lanes values(const std::uint8_t* block, const Header& of) {
  if constexpr (kType == DenseType::f32) {
    return load_lanes(reinterpret_cast<const float*>(block) + h * kLanes);
  } else if constexpr (kType == DenseType::f16) {
    return load_lanes(reinterpret_cast<const std::uint16_t*>(block) + h * kLanes);
  } else if constexpr (kType == DenseType::bf16) {
    return bf16_lanes(block + 2 * h * kLanes);
  } else if constexpr (kType == DenseType::q8) {
    return mul(s8_lanes(block + 2 + h * kLanes), of.d);
  } else if constexpr (kType == DenseType::q4) {
    return mul(nibble_lanes<h == 1, 8>(block + 2), of.d);
  } else {
    return add(mul(nibble_lanes<h == 1, 0>(block + 4), of.d), of.m);
  }
}

// y[r, c] of R rows that begin at data[r], C columns from x on.
template <DenseType kType, int R, int C>
void dot_rows(const std::uint8_t* const (&data)[R], std::size_t cols, const float* x,
              std::size_t stride, float (&y)[R][C]) {
  constexpr std::size_t kBytes = block_bytes(kType);
  Lanes sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = zero_lanes();
  }
  for (std::size_t b = 0; b < cols / kBlock; ++b) {
    for (int r = 0; r < R; ++r) {
      const std::uint8_t* block = data[r] + b * kBytes;
      prefetch(block);
      if constexpr (kBytes > 64) prefetch(block + 64);
      const Header of = header<kType>(block);
      const Lanes first = values<kType, 0>(block, of);
      for (int c = 0; c < C; ++c) {
        sum[r][c] = fma(first, load_lanes(x + c * stride + b * kBlock), sum[r][c]);
      }
      const Lanes second = values<kType, 1>(block, of);
      for (int c = 0; c < C; ++c) {
        sum[r][c] = fma(second, load_lanes(x + c * stride + b * kBlock + kLanes), sum[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) y[r][c] = sum_lanes(sum[r][c]);
  }
}

// R rows at a time of [rows.first, rows.last), the rest one by one; C columns from `column` on.
template <DenseType kType, int R, int C>
void few_columns(const DenseMatrix& w, RowRange rows, const F32Matrix& x, std::size_t column,
                 Outputs out) {
  const std::size_t part = (rows.last - rows.first) / R;
  for (std::size_t row = rows.first; row < rows.first + part; ++row) {
    const std::uint8_t* data[R];
    for (int r = 0; r < R; ++r) data[r] = as_bytes(w.data) + (row + r * part) * w.row_bytes;
    float y[R][C];
    dot_rows<kType, R, C>(data, w.cols, x.data + column * x.stride, x.stride, y);
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) out.data[(column + c) * out.stride + row + r * part] = y[r][c];
    }
  }
  if constexpr (R > 1) {
    few_columns<kType, 1, C>(w, {rows.first + part * R, rows.last}, x, column, out);
  }
}

// As many rows as leave the sums of C columns in registers; of one column, as many as hide the
// latency of the sums: of what has to be decoded first, three.
template <DenseType kType, int C>
void few_columns(const DenseMatrix& w, RowRange rows, const F32Matrix& x, std::size_t column,
                 Outputs y) {
  constexpr bool kDecoded = block_bytes(kType) < 2 * kBlock;
  constexpr int kRows = C == 1 ? (kDecoded ? 3 : 4) : kTileSums / C < 1 ? 1 : kTileSums / C;
  few_columns<kType, kRows, C>(w, rows, x, column, y);
}

template <DenseType kType>
void few_columns(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  switch (x.n) {
    case 1:
      return few_columns<kType, 1>(w, rows, x, 0, y);
    case 2:
      return few_columns<kType, 2>(w, rows, x, 0, y);
    case 3:
      return few_columns<kType, 3>(w, rows, x, 0, y);
    case 4:
      return few_columns<kType, 4>(w, rows, x, 0, y);
    case 5:
      return few_columns<kType, 5>(w, rows, x, 0, y);
    case 6:
      return few_columns<kType, 6>(w, rows, x, 0, y);
    default:
      for (std::size_t row = rows.first; row < rows.last; ++row) {
        few_columns<kType, 4>(w, {row, row + 1}, x, 0, y);
        if (x.n == 7) few_columns<kType, 3>(w, {row, row + 1}, x, 4, y);
        if (x.n == 8) few_columns<kType, 4>(w, {row, row + 1}, x, 4, y);
      }
  }
}

struct Panel {
  alignas(64) float weights[kPanelRows][kPanelCols];
  alignas(64) float sums[kPanelRows][kChunk][kLanes];
};

template <DenseType kType>
void decode_rows(const DenseMatrix& w, std::size_t row, std::size_t n_rows, std::size_t first,
                 std::size_t n, Panel& panel) {
  constexpr std::size_t kBytes = block_bytes(kType);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const std::uint8_t* data = as_bytes(w.data) + (row + r) * w.row_bytes + first / kBlock * kBytes;
    for (std::size_t i = 0; i < n; i += kBlock, data += kBytes) {
      const Header of = header<kType>(data);
      store_lanes(panel.weights[r] + i, values<kType, 0>(data, of));
      store_lanes(panel.weights[r] + i + kLanes, values<kType, 1>(data, of));
    }
  }
}

// The panel's rows from r on, n inputs of it, by columns from c of the chunk on, which begins at x.
template <int R, int C>
void add_tile(Panel& panel, std::size_t r, std::size_t c, std::size_t n, const float* x,
              std::size_t stride) {
  Lanes sum[R][C];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) sum[i][j] = load_lanes(panel.sums[r + i][c + j]);
  }
  for (std::size_t at = 0; at < n; at += kLanes) {
    Lanes weights[R];
    for (int i = 0; i < R; ++i) weights[i] = load_lanes(panel.weights[r + i] + at);
    for (int j = 0; j < C; ++j) {
      const Lanes xs = load_lanes(x + (c + j) * stride + at);
      for (int i = 0; i < R; ++i) sum[i][j] = fma(weights[i], xs, sum[i][j]);
    }
  }
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) store_lanes(panel.sums[r + i][c + j], sum[i][j]);
  }
}

template <int R>
void add_rows(Panel& panel, std::size_t r, std::size_t columns, std::size_t n, const float* x,
              std::size_t stride, std::size_t c) {
  for (; c + kTileColumns <= columns; c += kTileColumns) {
    add_tile<R, kTileColumns>(panel, r, c, n, x, stride);
  }
  for (; c < columns; ++c) add_tile<R, 1>(panel, r, c, n, x, stride);
}

template <DenseType kType>
void many_columns(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  Panel panel;
  for (std::size_t row = rows.first; row < rows.last; row += kPanelRows) {
    const std::size_t n_rows = min_size(kPanelRows, rows.last - row);
    for (std::size_t column = 0; column < x.n; column += kChunk) {
      const std::size_t columns = min_size(kChunk, x.n - column);
      for (std::size_t r = 0; r < n_rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) store_lanes(panel.sums[r][c], zero_lanes());
      }
      for (std::size_t first = 0; first < w.cols; first += kPanelCols) {
        const std::size_t n = min_size(kPanelCols, w.cols - first);
        decode_rows<kType>(w, row, n_rows, first, n, panel);
        const float* in = x.data + column * x.stride + first;
        for (std::size_t c = 0; c < columns; c += kTileColumns) {
          const std::size_t end = min_size(columns, c + kTileColumns);
          std::size_t r = 0;
          for (; r + kTileRows <= n_rows; r += kTileRows) {
            add_rows<kTileRows>(panel, r, end, n, in, x.stride, c);
          }
          for (; r < n_rows; ++r) add_rows<1>(panel, r, end, n, in, x.stride, c);
        }
      }
      for (std::size_t r = 0; r < n_rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          y.data[(column + c) * y.stride + row + r] = sum_lanes(load_lanes(panel.sums[r][c]));
        }
      }
    }
  }
}

template <DenseType kType>
void dense_columns(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  x.n <= kFewColumns ? few_columns<kType>(w, rows, x, y) : many_columns<kType>(w, rows, x, y);
}

inline void dense(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  switch (w.type) {
    case DenseType::f32:
      return dense_columns<DenseType::f32>(w, rows, x, y);
    case DenseType::f16:
      return dense_columns<DenseType::f16>(w, rows, x, y);
    case DenseType::bf16:
      return dense_columns<DenseType::bf16>(w, rows, x, y);
    case DenseType::q8:
      return dense_columns<DenseType::q8>(w, rows, x, y);
    case DenseType::q4:
      return dense_columns<DenseType::q4>(w, rows, x, y);
    case DenseType::q4m:
      return dense_columns<DenseType::q4m>(w, rows, x, y);
  }
}

}  // namespace
}  // namespace tsq::kernels
