#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

constexpr DenseType kTypes[] = {DenseType::f32, DenseType::f16, DenseType::bf16,
                                DenseType::q8,  DenseType::q4,  DenseType::q4m};
constexpr const char* kTypeNames[] = {"f32", "f16", "bf16", "q8", "q4", "q4m"};

// Rows of a type, drawn at random, with the values that the bytes stand for by the definition.
struct Dense {
  DenseType type;
  std::size_t rows;
  std::size_t cols;
  std::size_t row_bytes;
  Body data;
  std::vector<float> values;

  DenseMatrix view() const { return {type, data.data(), row_bytes, rows, cols}; }
};

std::size_t row_bytes(DenseType type, std::size_t cols) {
  switch (type) {
    case DenseType::f32:
      return cols * 4;
    case DenseType::f16:
    case DenseType::bf16:
      return cols * 2;
    case DenseType::q8:
      return cols / 32 * 34;
    case DenseType::q4:
      return cols / 32 * 18;
    case DenseType::q4m:
      return cols / 32 * 20;
  }
  return 0;
}

void put32(std::vector<std::byte>& out, std::uint32_t value) {
  put16(out, static_cast<std::uint16_t>(value & 0xFFFF));
  put16(out, static_cast<std::uint16_t>(value >> 16));
}

void put_block(DenseType type, Random& random, std::vector<std::byte>& out,
               std::vector<float>& values) {
  const std::size_t first = values.size();
  values.resize(first + 32);
  float* v = values.data() + first;
  switch (type) {
    case DenseType::f32:
      for (int i = 0; i < 32; ++i) put32(out, std::bit_cast<std::uint32_t>(v[i] = random.real()));
      return;
    case DenseType::f16:
      for (int i = 0; i < 32; ++i) {
        const std::uint16_t h = random_half(random);
        put16(out, h);
        v[i] = static_cast<float>(half_value(h));
      }
      return;
    case DenseType::bf16:
      for (int i = 0; i < 32; ++i) {
        const auto upper = std::bit_cast<std::uint32_t>(random.real()) & 0xFFFF0000U;
        put16(out, static_cast<std::uint16_t>(upper >> 16));
        v[i] = std::bit_cast<float>(upper);
      }
      return;
    case DenseType::q8: {
      const std::uint16_t d = random_half(random);
      put16(out, d);
      for (int i = 0; i < 32; ++i) {
        const int code = random.between(-128, 127);
        out.push_back(static_cast<std::byte>(code));
        v[i] = static_cast<float>(code) * static_cast<float>(half_value(d));
      }
      return;
    }
    case DenseType::q4:
    case DenseType::q4m: {
      const auto d = static_cast<float>(half_value(random_half(random)));
      const auto bits = [](float x) {
        std::uint16_t h;
        scalar::to_f16(&x, 1, &h);
        return h;
      };
      put16(out, bits(d));
      float m = 0;
      if (type == DenseType::q4m) {
        m = static_cast<float>(half_value(random_half(random)));
        put16(out, bits(m));
      }
      for (int i = 0; i < 16; ++i) {
        const int low = random.between(0, 15);
        const int high = random.between(0, 15);
        out.push_back(static_cast<std::byte>(low | high << 4));
        const auto value = [&](int code) {
          if (type == DenseType::q4) return static_cast<float>(code - 8) * d;
          const float product = static_cast<float>(code) * d;
          return product + m;
        };
        v[i] = value(low);
        v[i + 16] = value(high);
      }
      return;
    }
  }
}

Dense make_dense(DenseType type, std::size_t rows, std::size_t cols, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (std::size_t b = 0; b < rows * cols / 32; ++b) put_block(type, random, bytes, values);
  return {type, rows, cols, row_bytes(type, cols), guarded(bytes), std::move(values)};
}

std::string name(DenseType type, std::size_t rows, std::size_t cols, std::size_t n) {
  return std::string(kTypeNames[static_cast<int>(type)]) + ", " + std::to_string(rows) + " x " +
         std::to_string(cols) + ", " + std::to_string(n) + " columns";
}

TEST(DenseScalar, IsTheDefinition) {
  for (const DenseType type : kTypes) {
    const std::size_t rows = 5;
    const std::size_t cols = 96;
    const std::size_t n = 10;
    const Dense w = make_dense(type, rows, cols, 31);
    const Guarded<float> x = random_floats(n * cols, 32);
    Guarded<float> expected(n * rows);
    Guarded<float> values(rows * cols);
    std::copy(w.values.begin(), w.values.end(), values.begin());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < n; ++c) {
        float l[16] = {};
        for (std::size_t i = 0; i < cols; ++i) {
          l[i % 16] = std::fma(w.values[r * cols + i], x[c * cols + i], l[i % 16]);
        }
        for (int i = 0; i < 8; ++i) l[i] += l[i + 8];
        for (int i = 0; i < 4; ++i) l[i] += l[i + 4];
        l[0] += l[2];
        l[1] += l[3];
        expected[c * rows + r] = l[0] + l[1];
      }
    }
    Guarded<float> y(n * rows);
    scalar::dense_gemm(w.view(), {0, rows}, {x.data(), cols, n}, {y.data(), rows});
    expect_same_bits(y, expected, name(type, rows, cols, n));
    Guarded<float> decoded(rows * cols);
    for (std::size_t r = 0; r < rows; ++r) {
      scalar::dense_row(w.view(), r, decoded.data() + r * cols);
    }
    expect_same_bits(decoded, values, "rows of " + name(type, rows, cols, n));
  }
}

class DenseIsa : public EveryIsa {};
TEST_P(DenseIsa, EqualsScalar) {
  for (const DenseType type : kTypes) {
    for (const std::size_t rows : {1, 2, 3, 4, 5, 7, 8, 17}) {
      for (const std::size_t cols : {32, 64, 96, 352}) {
        const Dense w = make_dense(type, rows, cols, rows + cols);
        for (const std::size_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17}) {
          const Guarded<float> x = random_floats(n * cols, n);
          Guarded<float> expected = blank_outputs(n * rows);
          Guarded<float> actual = blank_outputs(n * rows);
          scalar::dense_gemm(w.view(), {0, rows}, {x.data(), cols, n}, {expected.data(), rows});
          k_->dense_gemm(w.view(), {0, rows}, {x.data(), cols, n}, {actual.data(), rows});
          expect_same_bits(actual, expected, name(type, rows, cols, n));
          if (HasFatalFailure()) return;
        }
        Guarded<float> expected(cols);
        Guarded<float> actual(cols);
        scalar::dense_row(w.view(), rows - 1, expected.data());
        k_->dense_row(w.view(), rows - 1, actual.data());
        expect_same_bits(actual, expected, "last row of " + name(type, rows, cols, 1));
      }
    }
  }
}

// More columns than a chunk and more inputs than a panel, with a rest of each.
TEST_P(DenseIsa, ManyColumnsEqualScalar) {
  for (const DenseType type : kTypes) {
    const std::size_t cols = 1056;
    for (const std::size_t rows : {1, 8, 11}) {
      const Dense w = make_dense(type, rows, cols, rows);
      for (const std::size_t n : {9, 48, 53, 100}) {
        const Guarded<float> x = random_floats(n * cols, n);
        Guarded<float> expected = blank_outputs(n * rows);
        Guarded<float> actual = blank_outputs(n * rows);
        scalar::dense_gemm(w.view(), {0, rows}, {x.data(), cols, n}, {expected.data(), rows});
        k_->dense_gemm(w.view(), {0, rows}, {x.data(), cols, n}, {actual.data(), rows});
        expect_same_bits(actual, expected, name(type, rows, cols, n));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(DenseIsa, WritesItsRangeOnly) {
  for (const DenseType type : kTypes) {
    const std::size_t cols = 64;
    const std::size_t stride = 20;
    const Dense w = make_dense(type, 16, cols, 41);
    for (const std::size_t n : {1, 3, 8}) {
      const Guarded<float> x = random_floats(n * (cols + 3), 42);
      for (const RowRange range : {RowRange{0, 3}, {3, 16}, {7, 8}, {5, 5}}) {
        Guarded<float> expected = blank_outputs(n * stride);
        Guarded<float> actual = blank_outputs(n * stride);
        scalar::dense_gemm(w.view(), range, {x.data(), cols + 3, n}, {expected.data(), stride});
        k_->dense_gemm(w.view(), range, {x.data(), cols + 3, n}, {actual.data(), stride});
        expect_same_bits(actual, expected, name(type, 16, cols, n));
      }
    }
  }
}
TSQ_FOR_EVERY_ISA(DenseIsa);

}  // namespace
}  // namespace tsq::kernels::test
