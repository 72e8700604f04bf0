#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

// H's elements by definition: -1 to the number of ones that i and j share.
int sylvester(std::size_t i, std::size_t j) { return std::popcount(i & j) % 2 == 0 ? 1 : -1; }

std::vector<std::uint32_t> random_signs(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> signs((count + 31) / 32);
  for (auto& word : signs) word = static_cast<std::uint32_t>(random.bits());
  return signs;
}

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

constexpr std::size_t kSizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

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
TSQ_FOR_EVERY_ISA(Fwht);

}  // namespace
}  // namespace tsq::kernels::test
