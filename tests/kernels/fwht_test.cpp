#include <limits>

#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

// H's elements by definition: -1 to the number of ones that i and j share.
int sylvester(std::size_t i, std::size_t j) { return std::popcount(i & j) % 2 == 0 ? 1 : -1; }

Guarded<float> random_integers(std::size_t n, std::uint64_t seed) {
  Guarded<float> x(n);
  Random random(seed);
  for (float& v : x) v = static_cast<float>(random.between(-100, 100));
  return x;
}

// Integers go through the transform exactly.
TEST(FwhtScalar, IsTheDefinition) {
  for (const std::size_t n : {1, 2, 4, 8, 16, 32, 128, 1024, 4096}) {
    const std::size_t runs = n < 1024 ? 3 : 1;
    const Guarded<float> x = random_integers(runs * n, n);
    Guarded<float> expected(runs * n);
    for (std::size_t run = 0; run < runs; ++run) {
      for (std::size_t i = 0; i < n; ++i) {
        int sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
          sum += sylvester(i, j) * static_cast<int>(x[run * n + j]);
        }
        expected[run * n + i] = static_cast<float>(sum);
      }
    }
    Guarded<float> actual = x;
    scalar::fwht(actual.data(), actual.size(), n);
    expect_same_bits(actual, expected, "n = " + std::to_string(n));
  }
}

// On floats that round, the stages must come in ascending order.
TEST(FwhtScalar, StagesAscend) {
  const std::size_t n = 64;
  Guarded<float> actual = random_floats(n, 3);
  std::vector<float> expected(actual.begin(), actual.end());
  for (std::size_t h = 1; h < n; h *= 2) {
    const std::vector<float> from = expected;
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = (i & h) == 0 ? from[i] + from[i + h] : from[i - h] - from[i];
    }
  }
  scalar::fwht(actual.data(), n, n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(actual[i], expected[i]) << i;
}

TEST(RotateScalar, IsTheDefinition) {
  for (const std::size_t block : {1, 2, 16, 32, 128, 1024}) {
    const std::size_t count = 2 * std::max<std::size_t>(block, 16);
    const Guarded<float> x = random_integers(count, block);
    const auto signs = random_signs(count, block + 1);
    const auto sign = [&](std::size_t i) { return (signs[i / 32] >> (i % 32) & 1) != 0 ? -1 : 1; };
    const auto norm = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
    Guarded<float> rotated(count);
    Guarded<float> unrotated(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t start = i / block * block;
      int with_signs = 0;
      int without = 0;
      for (std::size_t j = 0; j < block; ++j) {
        const int v = sylvester(i - start, j) * static_cast<int>(x[start + j]);
        with_signs += sign(start + j) * v;
        without += v;
      }
      rotated[i] = static_cast<float>(with_signs) * norm;
      unrotated[i] = static_cast<float>(sign(i)) * (static_cast<float>(without) * norm);
    }
    Guarded<float> y(count);
    scalar::rotate(x.data(), signs.data(), count, block, y.data());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], rotated[i]) << block << ": " << i;
    scalar::unrotate(x.data(), signs.data(), count, block, y.data());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], unrotated[i]) << block << ": " << i;
  }
}

constexpr std::size_t kSizes[] = {1,   2,   4,    8,    16,   32,   64,   128,
                                  256, 512, 1024, 2048, 4096, 8192, 16384};

class Fwht : public EveryIsa {};
TEST_P(Fwht, EqualsScalar) {
  for (const std::size_t n : kSizes) {
    for (const std::size_t runs : {1, 3}) {
      Guarded<float> expected = random_floats(runs * n, n);
      Guarded<float> actual = expected;
      scalar::fwht(expected.data(), expected.size(), n);
      k_->fwht(actual.data(), actual.size(), n);
      expect_same_bits(actual, expected, "n = " + std::to_string(n));
    }
  }
}

// Guarded memory ends at a page; a float before its end the start is odd.
TEST_P(Fwht, StartsAnywhere) {
  for (const std::size_t n : kSizes) {
    for (const std::size_t behind : {1, 3}) {
      Guarded<float> expected = random_floats(2 * n + behind, n);
      Guarded<float> actual = expected;
      scalar::fwht(expected.data(), 2 * n, n);
      k_->fwht(actual.data(), 2 * n, n);
      expect_same_bits(actual, expected, "n = " + std::to_string(n));
    }
  }
}

// Above what the inner blocks are made for.
TEST_P(Fwht, LargerThanACache) {
  const std::size_t n = std::size_t{1} << 18;
  Guarded<float> expected = random_floats(n, n);
  Guarded<float> actual = expected;
  scalar::fwht(expected.data(), n, n);
  k_->fwht(actual.data(), n, n);
  expect_same_bits(actual, expected, "2^18");
}

// Sums that overflow and values that are not numbers go the same way: the same places are infinite
// or NaN, and of the numbers every bit is the same.
TEST_P(Fwht, HugeValuesEqualScalar) {
  for (const std::size_t n : {4, 16, 128, 4096}) {
    Guarded<float> expected = random_floats(n, n);
    for (float& v : expected) v *= 1e38F;
    Guarded<float> actual = expected;
    scalar::fwht(expected.data(), n, n);
    k_->fwht(actual.data(), n, n);
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << n << ": " << i;
      } else {
        EXPECT_EQ(actual[i], expected[i]) << n << ": " << i;
      }
    }
  }
}

TEST_P(Fwht, RotationsEqualScalar) {
  struct Case {
    RotateFn* scalar;
    RotateFn* isa;
  };
  for (const Case& c : {Case{scalar::rotate, k_->rotate}, Case{scalar::unrotate, k_->unrotate}}) {
    for (const std::size_t block : kSizes) {
      for (const std::size_t runs : {1, 2, 5}) {
        const std::size_t count = runs * block;
        const Guarded<float> x = random_floats(count, count);
        const auto signs = random_signs(count, 9);
        for (const std::uint32_t* s : {static_cast<const std::uint32_t*>(nullptr), signs.data()}) {
          Guarded<float> expected(count);
          Guarded<float> actual(count);
          c.scalar(x.data(), s, count, block, expected.data());
          c.isa(x.data(), s, count, block, actual.data());
          expect_same_bits(actual, expected, "block " + std::to_string(block));
          Guarded<float> in_place = x;
          c.isa(in_place.data(), s, count, block, in_place.data());
          expect_same_bits(in_place, expected, "in place, block " + std::to_string(block));
        }
      }
    }
  }
}

// A matrix, what lies between its rows, and its maxima, all against an unmapped page.
struct Matrix {
  Matrix(std::size_t n_rows, std::size_t n_cols, std::size_t row_stride)
      : rows(n_rows), cols(n_cols), stride(row_stride), row_max(n_rows), col_max(n_cols) {
    for (float& v : row_max) v = -1;  // so that each has to be written
    for (float& v : col_max) v = -1;
  }
  void transform(FwhtMatrixFn* fn, std::size_t row_block, std::size_t col_block) {
    fn({data.data(), rows, cols, stride}, row_block, col_block, {row_max.data(), col_max.data()});
  }
  void expect_same(const Matrix& expected, const std::string& what) const {
    expect_same_bits(data, expected.data, what);
    expect_same_bits(row_max, expected.row_max, what + ", row maxima");
    expect_same_bits(col_max, expected.col_max, what + ", column maxima");
  }
  std::string name(std::size_t row_block, std::size_t col_block) const {
    return std::to_string(rows) + " x " + std::to_string(cols) + ", blocks " +
           std::to_string(row_block) + " and " + std::to_string(col_block);
  }

  std::size_t rows, cols, stride;
  Guarded<float> data = random_floats((rows - 1) * stride + cols, rows* cols);
  Guarded<float> row_max, col_max;
};

// In integers, which are exact: H of the rows, H of the columns, by definition.
TEST(FwhtMatrixScalar, IsTheDefinition) {
  const std::size_t rows = 8;
  const std::size_t cols = 12;
  for (const std::size_t row_block : {1, 4}) {
    for (const std::size_t col_block : {1, 2, 8}) {
      Matrix m(rows, cols, cols + 1);
      m.data = random_integers(m.data.size(), 3);
      const Guarded<float> x = m.data;
      m.transform(scalar::fwht_matrix, row_block, col_block);
      std::vector<float> row_max(rows), col_max(cols);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; ++c) {
          int sum = 0;
          for (std::size_t i = 0; i < col_block; ++i) {
            for (std::size_t j = 0; j < row_block; ++j) {
              const std::size_t from_r = r / col_block * col_block + i;
              const std::size_t from_c = c / row_block * row_block + j;
              sum += sylvester(r % col_block, i) * sylvester(c % row_block, j) *
                     static_cast<int>(x[from_r * m.stride + from_c]);
            }
          }
          const auto value = static_cast<float>(sum);
          EXPECT_EQ(m.data[r * m.stride + c], value) << m.name(row_block, col_block);
          row_max[r] = std::max(row_max[r], std::fabs(value));
          col_max[c] = std::max(col_max[c], std::fabs(value));
        }
      }
      for (std::size_t r = 0; r < rows; ++r) EXPECT_EQ(m.row_max[r], row_max[r]) << r;
      for (std::size_t c = 0; c < cols; ++c) EXPECT_EQ(m.col_max[c], col_max[c]) << c;
      for (std::size_t r = 0; r + 1 < rows; ++r) {
        EXPECT_EQ(m.data[r * m.stride + cols], x[r * m.stride + cols]) << "between the rows";
      }
    }
  }
}

// Rows first, then columns, each with ascending stages: on floats that round the order shows.
TEST(FwhtMatrixScalar, RowsComeFirst) {
  const std::size_t n = 16;
  Matrix m(n, n, n);
  std::vector<float> expected(m.data.begin(), m.data.end());
  for (std::size_t r = 0; r < n; ++r) scalar::fwht(expected.data() + r * n, n, n);
  for (std::size_t c = 0; c < n; ++c) {
    float column[n];
    for (std::size_t r = 0; r < n; ++r) column[r] = expected[r * n + c];
    scalar::fwht(column, n, n);
    for (std::size_t r = 0; r < n; ++r) expected[r * n + c] = column[r];
  }
  m.transform(scalar::fwht_matrix, n, n);
  for (std::size_t i = 0; i < n * n; ++i) EXPECT_EQ(m.data[i], expected[i]) << i;
}

TEST_P(Fwht, MatricesEqualScalar) {
  struct Case {
    std::size_t rows, cols, gap, row_block, col_block;
  };
  std::vector<Case> cases;
  for (const std::size_t col_block : kSizes) {  // tails of 0 to 15 columns, rows 4 KiB apart too
    const std::size_t cols = 16 + col_block % 7 + (col_block > 64 ? 1 : 0);
    cases.push_back({col_block, cols, 5, 1, col_block});
    if (col_block <= 1024) cases.push_back({3 * col_block, 48, 1024 - 48, 16, col_block});
  }
  for (std::size_t cols = 1; cols <= 40; ++cols) cases.push_back({8, cols, 0, 1, 8});
  for (const std::size_t row_block : kSizes) {
    cases.push_back({11, row_block, 3, row_block, 1});
    cases.push_back({16, row_block, 0, row_block, 16});
    if (row_block < 64) cases.push_back({6, 9 * row_block, 1, row_block, 2});
  }
  for (const Case& c : cases) {
    Matrix expected(c.rows, c.cols, c.cols + c.gap);
    Matrix actual = expected;
    expected.transform(scalar::fwht_matrix, c.row_block, c.col_block);
    actual.transform(k_->fwht_matrix, c.row_block, c.col_block);
    actual.expect_same(expected, actual.name(c.row_block, c.col_block));
  }
}

TEST_P(Fwht, MaximaAreOptional) {
  for (const std::size_t col_block : {1, 16}) {
    Matrix expected(16, 33, 40);
    const Matrix x = expected;
    expected.transform(scalar::fwht_matrix, 1, col_block);
    for (FwhtMatrixFn* const fn : {&scalar::fwht_matrix, k_->fwht_matrix}) {
      for (const bool rows : {false, true}) {
        for (const bool cols : {false, true}) {
          Matrix m = x;
          fn({m.data.data(), m.rows, m.cols, m.stride}, 1, col_block,
             {rows ? m.row_max.data() : nullptr, cols ? m.col_max.data() : nullptr});
          expect_same_bits(m.data, expected.data, "data");
          expect_same_bits(m.row_max, rows ? expected.row_max : x.row_max, "row maxima");
          expect_same_bits(m.col_max, cols ? expected.col_max : x.col_max, "column maxima");
        }
      }
    }
  }
}

// A maximum tells that there was an infinity, or a value that is not a number.
TEST_P(Fwht, MaximaShowWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (FwhtMatrixFn* const fn : {&scalar::fwht_matrix, k_->fwht_matrix}) {
    Matrix m(9, 21, 21);
    m.data[3 * 21 + 4] = -inf;
    m.data[3 * 21 + 5] = nan;
    m.data[5 * 21 + 4] = 1e30F;
    m.transform(fn, 1, 1);
    EXPECT_TRUE(std::isnan(m.row_max[3]));
    EXPECT_EQ(m.col_max[4], inf);
    EXPECT_TRUE(std::isnan(m.col_max[5]));
    EXPECT_EQ(m.row_max[5], 1e30F);
  }
}
TSQ_FOR_EVERY_ISA(Fwht);

}  // namespace
}  // namespace tsq::kernels::test
