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

inline TernaryMatrix view(const Encoding& e, const Body& body, std::size_t rows, std::size_t cols) {
  return {body.data(), rows, cols, e.stride16};
}

inline std::string shape(std::size_t rows, std::size_t groups, std::size_t n) {
  return std::to_string(rows) + " rows, " + std::to_string(groups) + " groups, " +
         std::to_string(n) + " columns";
}

// The contract's arithmetic on the weights themselves.
inline void check_gemm_against_definition(const Encoding& e) {
  const Kernels& k = *table(Isa::scalar);
  for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 11}) {
    const std::size_t rows = 35;
    const std::size_t n = 3;
    const Ternary t = e.make(rows, groups * kGroup, 7 + groups);
    const Body body = e.encode(t);
    const Q8 x = make_q8(n, t.cols, 70 + groups);
    const Guarded<float> xf = random_floats(n * t.cols, 71 + groups);

    Guarded<float> expected(n * rows);
    Guarded<float> expected_f32(n * rows);
    Guarded<float> values(rows * t.cols);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < t.cols; ++i) {
        values[r * t.cols + i] = static_cast<float>(t.weights[r * t.cols + i]) *
                                 static_cast<float>(half_value(t.scale(r, i / kGroup)));
      }
      for (std::size_t c = 0; c < n; ++c) {
        float acc = 0;
        float acc_f32 = 0;
        for (std::size_t g = 0; g < groups; ++g) {
          const auto w_scale = static_cast<float>(half_value(t.scale(r, g)));
          int dot = 0;
          float dot_f32 = 0;
          for (std::size_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
            const int w = t.weights[r * t.cols + i];
            dot += w * x.q[c * t.cols + i];
            dot_f32 = std::fma(static_cast<float>(w), xf[c * t.cols + i], dot_f32);
          }
          acc = std::fma(static_cast<float>(dot), w_scale * x.scale[c * groups + g], acc);
          acc_f32 = std::fma(dot_f32, w_scale, acc_f32);
        }
        expected[c * rows + r] = acc;
        expected_f32[c * rows + r] = acc_f32;
      }
    }

    const TernaryMatrix w = view(e, body, rows, t.cols);
    Guarded<float> y = blank_outputs(n * rows);
    (k.*e.gemm)(w, {0, rows}, x.view(), {y.data(), rows});
    expect_same_bits(y, expected, "gemm, " + shape(rows, groups, n));
    y = blank_outputs(n * rows);
    (k.*e.gemm_f32)(w, {0, rows}, {xf.data(), t.cols, n}, {y.data(), rows});
    expect_same_bits(y, expected_f32, "gemm_f32, " + shape(rows, groups, n));
    Guarded<float> decoded(rows * t.cols);
    for (std::size_t r = 0; r < rows; ++r) (k.*e.row)(w, r, decoded.data() + r * t.cols);
    expect_same_bits(decoded, values, "row, " + shape(rows, groups, n));
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
}

inline void check_gemm_shapes(const Encoding& e, const Kernels& k) {
  for (const std::size_t rows : {1, 3, 17, 31, 32, 33, 64, 96, 131}) {
    for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 7, 9, 10, 13}) {
      const Ternary t = e.make(rows, groups * kGroup, 11 * rows + groups);
      const Body body = e.encode(t);
      for (const std::size_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 24}) {
        const Q8 x = make_q8(n, t.cols, n);
        compare_gemm(e, k, view(e, body, rows, t.cols), x, shape(rows, groups, n));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// What overflows first: every weight the same, activations at the contract's limit.
inline void check_gemm_extremes(const Encoding& e, const Kernels& k) {
  for (const int weight : {-1, 0, 1}) {
    for (const std::size_t n : {1, 2, 5, 8}) {
      const Ternary t = make_ternary(64, 6 * kGroup, 5, weight);
      const Body body = e.encode(t);
      compare_gemm(e, k, {body.data(), t.rows, t.cols}, make_q8(n, t.cols, 6, 127),
                   "all weights " + std::to_string(weight));
    }
  }
}

// A range writes its rows and no others; columns may lie further apart than the rows need.
inline void check_gemm_ranges(const Encoding& e, const Kernels& k) {
  const Ternary t = e.make(140, 7 * kGroup, 21);
  const Body body = e.encode(t);
  const TernaryMatrix w = view(e, body, t.rows, t.cols);
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
  for (const std::size_t rows : {1, 17, 32, 33, 70}) {
    for (const std::size_t groups : {1, 2, 3, 4, 5, 6, 11}) {
      const Ternary t = e.make(rows, groups * kGroup, 13 * rows + groups);
      const Body body = e.encode(t);
      const TernaryMatrix w = view(e, body, rows, t.cols);
      for (const std::size_t n : {1, 2, 3, 4, 5, 8, 9}) {
        const Guarded<float> x = random_floats(n * t.cols, n);
        Guarded<float> expected = blank_outputs(n * rows);
        Guarded<float> actual = blank_outputs(n * rows);
        (table(Isa::scalar)->*e.gemm_f32)(w, {0, rows}, {x.data(), t.cols, n},
                                          {expected.data(), rows});
        (k.*e.gemm_f32)(w, {0, rows}, {x.data(), t.cols, n}, {actual.data(), rows});
        expect_same_bits(actual, expected, shape(rows, groups, n));
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

}  // namespace tsq::kernels::test
