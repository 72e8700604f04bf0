// How a weight's scales are read and how dots become sums, kWidth rows a vector. A level's vector.h
// comes before.
#pragma once

#include "kernels/x86/panel.h"

namespace tsq::kernels {
namespace {

template <std::size_t bytes>
inline void prefetch_bytes(const std::uint8_t* from) {
  for (std::size_t at = 0; at < bytes; at += 64) prefetch(from + at);
}

// Of a loop's counter: GCC would end the loop by comparing an address that it keeps on the stack.
inline void in_register(std::size_t& counter) { __asm__("" : "+r"(counter)); }

// How a part's exact dot joins the sum of its row: by an fma ...
struct Chain {
  using Vector = Floats;
  static Vector from_memory(Floats y) { return y; }
  static Floats to_memory(Vector sum) { return sum; }
  static Vector join(Vector sum, Ints dot, Floats w_scale, Floats x_scale) {
    return fma(to_floats(dot), mul(w_scale, x_scale), sum);
  }
  static Floats total(Vector sum, Floats, const Q8Matrix&, std::size_t) { return sum; }
};
// ... or as an int32, scaled at the end.
struct WholeRow {
  using Vector = Ints;
  static Vector from_memory(Floats y) { return as_ints(y); }
  static Floats to_memory(Vector sum) { return as_floats(sum); }
  static Vector join(Vector sum, Ints dot, Floats, Floats) { return add_ints(sum, dot); }
  static Floats total(Vector sum, Floats w_scale, const Q8Matrix& x, std::size_t column) {
    return mul(to_floats(sum), div(w_scale, set_floats(x.token_scale[column])));
  }
};

// Where the weight scales lie: in lines of each group in the body, or in an array beside it.
template <std::size_t lines, class SumOf = Chain>
struct Scales {
  static constexpr std::size_t kLines = lines;
  static constexpr std::size_t kLineBytes = lines * kScaleLine;
  static constexpr std::size_t kParts = lines == 2 ? 2 : 1;
  using Sum = SumOf;

  // Those in the array, of vector v of a block's rows.
  static Floats of_rows(const TernaryMatrix& w, std::size_t block, int v) {
    if constexpr (lines != 0) return zeros();
    if (w.scale_kind == ScaleKind::per_tensor) return set_floats(w.scales[0]);
    return load_floats(w.scales + block * kRowBlock + static_cast<std::size_t>(v) * kWidth);
  }
  // Those of a part, whose line is `line` if there are lines.
  static Floats of_part(const std::uint8_t* line, int v, Floats rows) {
    if constexpr (lines != 0) return load_half(line + static_cast<std::size_t>(v) * 2 * kWidth);
    return rows;
  }
  // Those of the parts of a group, whose first line is `line`.
  static void decode(const TernaryMatrix& w, std::size_t block, const std::uint8_t* line,
                     float (*parts)[kRowBlock]) {
    for (std::size_t part = 0; part < kParts; ++part) {
      for (int v = 0; v < kVectors; ++v) {
        store_floats(parts[part] + static_cast<std::size_t>(v) * kWidth,
                     of_part(line + part * kScaleLine, v, of_rows(w, block, v)));
      }
    }
  }
};

// Vector v of a block's rows in column `column` of its outputs, as far as the matrix goes.
inline Lanes lanes_of(const BlockOutputs& y, int v) {
  const std::size_t before = static_cast<std::size_t>(v) * kWidth;
  return first_lanes(y.rows > before ? y.rows - before : 0);
}
inline float* place_of(const BlockOutputs& y, std::size_t column, int v) {
  return y.data + column * y.stride + static_cast<std::size_t>(v) * kWidth;
}
inline void store_outputs(const BlockOutputs& y, std::size_t column, int v, Floats values) {
  if (y.rows >= kRowBlock) return store_floats(place_of(y, column, v), values);
  store_floats(place_of(y, column, v), lanes_of(y, v), values);  // slow on some CPUs
}

inline BlockOutputs block_outputs(const TernaryMatrix& w, std::size_t block, Outputs y) {
  const std::size_t row = block * kRowBlock;
  return {y.data + row, y.stride, w.rows - row};
}

// The sums of S row blocks while up to N columns pass.
template <class P, int S, int N>
struct ColumnSums {
  Floats rows[S][kVectors];  // scales, if the body has none
  typename P::Sum::Vector acc[N][S][kVectors];

  ColumnSums(const TernaryMatrix& w, const std::size_t (&blocks)[S]) {
    for (int s = 0; s < S; ++s) {
      for (int v = 0; v < kVectors; ++v) {
        rows[s][v] = P::of_rows(w, blocks[s], v);
        for (int c = 0; c < N; ++c) acc[c][s][v] = P::Sum::from_memory(zeros());
      }
    }
  }
  void join(int c, int s, int v, Ints dot, const std::uint8_t* line, Floats x_scale) {
    acc[c][s][v] = P::Sum::join(acc[c][s][v], dot, P::of_part(line, v, rows[s][v]), x_scale);
  }
  void store(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
             Outputs y) const {
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (std::size_t c = 0; c < x.n; ++c) {
        for (int v = 0; v < kVectors; ++v) {
          store_outputs(out, c, v, P::Sum::total(acc[c][s][v], rows[s][v], x, c));
        }
      }
    }
  }
};

}  // namespace
}  // namespace tsq::kernels
