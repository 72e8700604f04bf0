// The transform of the rows and columns of a matrix.
//
// Trick: a column pass takes three stages between 8 whole rows, and a transform of n rows is 8 of
// n / 8 and one pass more: 8 rows stay in L2, 64 in L3 until they are done. No more than 8, for
// rows often lie a multiple of 4 KiB apart, where L1 has room for 8 lines; whole rows, for the same
// reason in L2. Row transforms come just before the first column pass, largest magnitudes after the
// last one, while the rows lie in a cache.
#pragma once

#include "kernels/x86/fwht.h"
#include "kernels/x86/vectors.h"

namespace tsq::kernels {
namespace {

// The stages between n rows that lie `step` apart.
template <std::size_t n>
void column_pass(float* x, std::size_t step, std::size_t cols) {
  for_vectors(cols, [&](std::size_t c, auto lanes) {
    Vec v[n];
    unroll<n>([&](auto k) { v[k.value] = load(x + k.value * step + c, lanes); });
    butterflies<1>(v);
    unroll<n>([&](auto k) { store(x + k.value * step + c, lanes, v[k.value]); });
  });
}

// The largest magnitudes of n rows that lie `step` apart: of each row to rows[k * rows_step], into
// each column's where there are any.
template <std::size_t n>
void collect(const float* x, std::size_t step, std::size_t cols, float* rows, std::size_t rows_step,
             float* columns) {
  Vec largest[n];
  unroll<n>([&](auto k) { largest[k.value] = zeros(); });
  for_vectors(cols, [&](std::size_t c, auto lanes) {
    Vec of_column = columns != nullptr ? load(columns + c, lanes) : zeros();
    unroll<n>([&](auto k) {
      const Vec v = load(x + k.value * step + c, lanes);
      largest[k.value] = max_magnitude(largest[k.value], v);
      of_column = max_magnitude(of_column, v);
    });
    if (columns != nullptr) store(columns + c, lanes, of_column);
  });
  if (rows == nullptr) return;
  unroll<n>([&](auto k) { rows[k.value * rows_step] = reduce_max(largest[k.value]); });
}

class MatrixTransform {
 public:
  MatrixTransform(const RowMajorF32& x, std::size_t row_block, Maxima max)
      : x_(x), row_block_(row_block), max_(max) {}

  // The rows from r on, and the columns of n rows; n is a power of two.
  void rows_and_columns(std::size_t r, std::size_t n, bool last) {
    const std::size_t runs = min_size(n, kRadix);
    const std::size_t h = n / runs;
    if (h == 1) {
      rows(r, n);
    } else {
      for (std::size_t k = 0; k < runs; ++k) rows_and_columns(r + k * h, h, false);
    }
    for (std::size_t k = r; k < r + h; ++k) {
      with_constant<kRadix>(runs, [&](auto c) {
        if (c.value > 1) column_pass<c.value>(row(k), h * x_.stride, x_.cols);
        if (last) collect_from<c.value>(k, h);
      });
    }
  }

  // n rows from r on.
  void rows(std::size_t r, std::size_t n) {
    if (row_block_ == 1) return;
    Unchanged unchanged;
    for (std::size_t k = r; k < r + n; ++k) {
      const float* const after = row(k + 1 < x_.rows ? k + 1 : k);
      transforms(row(k), row(k), x_.cols, row_block_, after, unchanged, unchanged);
    }
  }

  // Of n rows, h apart.
  template <std::size_t n>
  void collect_from(std::size_t r, std::size_t h) {
    if (max_.rows == nullptr && max_.cols == nullptr) return;
    float* const to = max_.rows != nullptr ? max_.rows + r : nullptr;
    collect<n>(row(r), h * x_.stride, x_.cols, to, h, max_.cols);
  }

 private:
  float* row(std::size_t r) const { return x_.data + r * x_.stride; }

  RowMajorF32 x_;
  std::size_t row_block_;
  Maxima max_;
};

inline void transform_matrix(const RowMajorF32& x, std::size_t row_block, std::size_t col_block,
                             Maxima max) {
  for (std::size_t c = 0; max.cols != nullptr && c < x.cols; ++c) max.cols[c] = 0;
  MatrixTransform t(x, row_block, max);
  if (col_block > 1) {
    for (std::size_t r = 0; r < x.rows; r += col_block) t.rows_and_columns(r, col_block, true);
    return;
  }
  std::size_t r = 0;
  for (; r + kRadix <= x.rows; r += kRadix) {
    t.rows(r, kRadix);
    t.collect_from<kRadix>(r, 1);
  }
  for (; r < x.rows; ++r) {
    t.rows(r, 1);
    t.collect_from<1>(r, 1);
  }
}

}  // namespace
}  // namespace tsq::kernels
