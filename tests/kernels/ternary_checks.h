// The checks that t2, t1 and s34 share: they differ in the weights that they can hold, in the
// encoder and in the kernels.
#pragma once

#include "tests/kernels/support.h"

namespace tsq::kernels::test {

struct Encoding {
  Body (*encode)(const Ternary&);
  TernaryGemmFn* Kernels::*gemm;
  TernaryGemmF32Fn* Kernels::*gemm_f32;
  TernaryRowFn* Kernels::*row;
  Ternary (*make)(std::size_t rows, std::size_t cols, std::uint64_t seed) = random_ternary;
  bool stride16 = false;
};

inline TernaryMatrix view(const Encoding& e, const Ternary& t, const Body& body) {
  return {body.data(), t.rows, t.cols, e.stride16, t.kind, t.array.data()};
}

inline std::string shape(std::size_t rows, std::size_t groups, std::size_t n) {
  return std::to_string(rows) + " rows, " + std::to_string(groups) + " groups, " +
         std::to_string(n) + " columns";
}

// What the scales rule, of weights and of activations.
struct Scaling {
  ScaleKind kind;
  bool per_token;
};
inline std::string name(const Scaling& s) {
  constexpr const char* kNames[] = {"per group", "per half group", "per row", "per tensor"};
  return std::string(kNames[static_cast<int>(s.kind)]) + (s.per_token ? ", per token: " : ": ");
}
inline std::vector<Scaling> scalings(const Encoding& e) {
  std::vector<Scaling> all;
  for (const ScaleKind kind : {ScaleKind::per_group, ScaleKind::per_half_group, ScaleKind::per_row,
                               ScaleKind::per_tensor}) {
    if (kind == ScaleKind::per_half_group && e.gemm != &Kernels::t2_gemm) continue;
    all.push_back({kind, false});
    all.push_back({kind, true});
  }
  return all;
}

// The contract's arithmetic on the weights themselves.
inline float defined_product(const Ternary& t, std::size_t r, const Q8& x, std::size_t c) {
  const std::size_t width = t.kind == ScaleKind::per_half_group ? 64 : 128;
  const bool whole = t.n_lines() == 0 && x.token_scale.size() != 0;
  float acc = 0;
  std::int64_t row_dot = 0;
  for (std::size_t first = 0; first < t.cols; first += width) {
    int dot = 0;
    for (std::size_t i = first; i < first + width; ++i) {
      dot += t.weights[r * t.cols + i] * x.q[c * t.cols + i];
    }
    row_dot += dot;
    const float scale = t.scale(r, first) * x.scale[c * t.groups() + first / kGroup];
    acc = std::fma(static_cast<float>(dot), scale, acc);
  }
  if (!whole) return acc;
  return static_cast<float>(row_dot) * (t.scale(r, 0) / x.token_scale[c]);
}

inline float defined_product(const Ternary& t, std::size_t r, const float* x) {
  const std::size_t width = t.kind == ScaleKind::per_half_group ? 64 : 128;
  float acc = 0;
  for (std::size_t first = 0; first < t.cols; first += width) {
    float dot = 0;
    for (std::size_t i = first; i < first + width; ++i) {
      dot = std::fma(static_cast<float>(t.weights[r * t.cols + i]), x[i], dot);
    }
    acc = std::fma(dot, t.scale(r, first), acc);
  }
  return acc;
}

inline void check_gemm_against_definition(const Encoding& e) {
  const Kernels& k = *table(Isa::scalar);
  for (const Scaling& scaling : scalings(e)) {
    for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 11}) {
      const std::size_t rows = 35;
      const std::size_t n = 3;
      const Ternary t =
          with_scales(e.make(rows, groups * kGroup, 7 + groups), scaling.kind, groups);
      const Body body = e.encode(t);
      const Q8 x = make_q8(n, t.cols, 70 + groups, 0, scaling.per_token);
      const Guarded<float> xf = random_floats(n * t.cols, 71 + groups);

      Guarded<float> expected(n * rows);
      Guarded<float> expected_f32(n * rows);
      Guarded<float> values(rows * t.cols);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = 0; i < t.cols; ++i) {
          values[r * t.cols + i] = static_cast<float>(t.weights[r * t.cols + i]) * t.scale(r, i);
        }
        for (std::size_t c = 0; c < n; ++c) {
          expected[c * rows + r] = defined_product(t, r, x, c);
          expected_f32[c * rows + r] = defined_product(t, r, xf.data() + c * t.cols);
        }
      }

      const std::string what = name(scaling) + shape(rows, groups, n);
      const TernaryMatrix w = view(e, t, body);
      Guarded<float> y = blank_outputs(n * rows);
      (k.*e.gemm)(w, {0, rows}, x.view(), {y.data(), rows});
      expect_same_bits(y, expected, "gemm, " + what);
      y = blank_outputs(n * rows);
      (k.*e.gemm_f32)(w, {0, rows}, {xf.data(), t.cols, n}, {y.data(), rows});
      expect_same_bits(y, expected_f32, "gemm_f32, " + what);
      Guarded<float> decoded(rows * t.cols);
      for (std::size_t r = 0; r < rows; ++r) (k.*e.row)(w, r, decoded.data() + r * t.cols);
      expect_same_bits(decoded, values, "row, " + what);
    }
  }
}

// One product by a level and by scalar, over the whole matrix.
inline void compare_gemm(const Encoding& e, const Kernels& k, const TernaryMatrix& w, const Q8& x,
                         const std::string& what) {
  Guarded<float> expected = blank_outputs(x.n * w.rows);
  Guarded<float> actual = blank_outputs(x.n * w.rows);
  (table(Isa::scalar)->*e.gemm)(w, {0, w.rows}, x.view(), {expected.data(), w.rows});
  (k.*e.gemm)(w, {0, w.rows}, x.view(), {actual.data(), w.rows});
  expect_same_bits(actual, expected, what);
  if (k.tile_columns == 0 || x.n < k.tile_columns) return;
  Guarded<std::int8_t> tiles(x.n / k.tile_columns * k.tile_columns * x.cols);
  k.interleave(x.q.data(), x.n, x.cols, tiles.data());
  Q8Matrix interleaved = x.view();
  interleaved.tiles = tiles.data();
  actual = blank_outputs(x.n * w.rows);
  (k.*e.gemm)(w, {0, w.rows}, interleaved, {actual.data(), w.rows});
  expect_same_bits(actual, expected, what + ", interleaved");
}

inline void check_gemm_shapes(const Encoding& e, const Kernels& k) {
  for (const std::size_t rows : {1, 3, 17, 31, 32, 33, 64, 96, 131}) {
    for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 7, 9, 10, 13}) {
      const Ternary t = e.make(rows, groups * kGroup, 11 * rows + groups);
      const Body body = e.encode(t);
      for (const std::size_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 24}) {
        const Q8 x = make_q8(n, t.cols, n);
        compare_gemm(e, k, view(e, t, body), x, shape(rows, groups, n));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Columns that kernels/x86 takes in two passes, over rows of more than a panel.
inline constexpr int kMoreThanAPass = 283;

// Every other scaling, over fewer shapes.
inline void check_gemm_scalings(const Encoding& e, const Kernels& k) {
  for (const Scaling& scaling : scalings(e)) {
    for (const std::size_t rows : {1, 31, 33, 131}) {
      for (const std::size_t groups : {1, 2, 5, 6, 11}) {
        const Ternary t =
            with_scales(e.make(rows, groups * kGroup, 11 * rows + groups), scaling.kind, groups);
        const Body body = e.encode(t);
        for (const std::size_t n : {1, 2, 3, 4, 8, 11, kMoreThanAPass}) {
          if (n == kMoreThanAPass && (rows != 33 || groups != 11)) continue;
          const Q8 x = make_q8(n, t.cols, n, 0, scaling.per_token);
          compare_gemm(e, k, view(e, t, body), x, name(scaling) + shape(rows, groups, n));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// What overflows first: every weight the same, activations at the contract's limit. 1041 groups:
// the dot of a whole row is beyond the integers that a float holds exactly.
inline void check_gemm_extremes(const Encoding& e, const Kernels& k) {
  for (const Scaling& scaling : scalings(e)) {
    for (const int weight : {-1, 0, 1}) {
      for (const std::size_t groups : {6, 1041}) {
        const std::size_t rows = groups == 6 ? 64 : 2;
        const Ternary t =
            with_scales(make_ternary(rows, groups * kGroup, 5, weight), scaling.kind, 9);
        const Body body = e.encode(t);
        for (const std::size_t n : {1, 2, 5, 8}) {
          const Q8 x = make_q8(n, t.cols, 6, 127, scaling.per_token);
          compare_gemm(e, k, view(e, t, body), x,
                       name(scaling) + "all weights " + std::to_string(weight));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// A range writes its rows and no others; columns may lie further apart than the rows need.
inline void check_gemm_ranges(const Encoding& e, const Kernels& k) {
  const Ternary t = e.make(140, 7 * kGroup, 21);
  const Body body = e.encode(t);
  const TernaryMatrix w = view(e, t, body);
  const std::size_t stride = 150;
  for (const RowRange range :
       {RowRange{0, 32}, {32, 64}, {32, 128}, {64, 140}, {128, 140}, {96, 96}}) {
    for (const std::size_t n : {1, 2, 9}) {
      const Q8 x = make_q8(n, t.cols, 22);
      const Guarded<float> xf = random_floats(n * t.cols, 23);
      Guarded<float> expected = blank_outputs(n * stride);
      Guarded<float> actual = blank_outputs(n * stride);
      (table(Isa::scalar)->*e.gemm)(w, range, x.view(), {expected.data(), stride});
      (k.*e.gemm)(w, range, x.view(), {actual.data(), stride});
      expect_same_bits(actual, expected, "gemm from row " + std::to_string(range.first));
      expected = blank_outputs(n * stride);
      actual = blank_outputs(n * stride);
      (table(Isa::scalar)->*e.gemm_f32)(w, range, {xf.data(), t.cols, n},
                                        {expected.data(), stride});
      (k.*e.gemm_f32)(w, range, {xf.data(), t.cols, n}, {actual.data(), stride});
      expect_same_bits(actual, expected, "gemm_f32 from row " + std::to_string(range.first));
    }
  }
}

inline void check_gemm_f32_shapes(const Encoding& e, const Kernels& k) {
  for (const Scaling& scaling : scalings(e)) {
    if (scaling.per_token) continue;  // of int8 alone
    for (const std::size_t rows : {1, 17, 32, 33, 70}) {
      for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 11}) {
        const Ternary t =
            with_scales(e.make(rows, groups * kGroup, 13 * rows + groups), scaling.kind, groups);
        const Body body = e.encode(t);
        const TernaryMatrix w = view(e, t, body);
        for (const std::size_t n : {1, 2, 3, 4, 5, 8, 9, kMoreThanAPass}) {
          if (n == kMoreThanAPass && (rows != 33 || groups != 11)) continue;
          const Guarded<float> x = random_floats(n * t.cols, n);
          Guarded<float> expected = blank_outputs(n * rows);
          Guarded<float> actual = blank_outputs(n * rows);
          (table(Isa::scalar)->*e.gemm_f32)(w, {0, rows}, {x.data(), t.cols, n},
                                            {expected.data(), rows});
          (k.*e.gemm_f32)(w, {0, rows}, {x.data(), t.cols, n}, {actual.data(), rows});
          expect_same_bits(actual, expected, name(scaling) + shape(rows, groups, n));
          if (testing::Test::HasFatalFailure()) return;
        }
        Guarded<float> expected = blank_outputs(t.cols);
        Guarded<float> actual = blank_outputs(t.cols);
        (table(Isa::scalar)->*e.row)(w, rows - 1, expected.data());
        (k.*e.row)(w, rows - 1, actual.data());
        expect_same_bits(actual, expected, "last row of " + shape(rows, groups, 1));
      }
    }
  }
}

}  // namespace tsq::kernels::test
