#include <limits>

#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A column's outputs, each against an unmapped page.
struct Quantized {
  Quantized(std::size_t count, bool per_token)
      : q(count),
        scale(count / kGroup),
        sum(count / kGroup),
        half_sum(count / kGroup),
        token_scale(per_token ? 1 : 0) {}
  Q8Column column() {
    return {q.data(), scale.data(), sum.data(), half_sum.data(),
            token_scale.size() == 0 ? nullptr : token_scale.data()};
  }

  Guarded<std::int8_t> q;
  Guarded<float> scale;
  Guarded<std::int32_t> sum, half_sum;
  Guarded<float> token_scale;
  bool ok = false;
};
void expect_same(const Quantized& actual, const Quantized& expected, const std::string& what) {
  ASSERT_TRUE(actual.ok && expected.ok) << what;
  expect_same_bits(actual.q, expected.q, what + ", q");
  expect_same_bits(actual.scale, expected.scale, what + ", scale");
  expect_same_bits(actual.sum, expected.sum, what + ", sum");
  expect_same_bits(actual.half_sum, expected.half_sum, what + ", half sum");
  expect_same_bits(actual.token_scale, expected.token_scale, what + ", token scale");
}

Quantized quantize(QuantizeFn* fn, const Guarded<float>& x, bool per_token) {
  Quantized r(x.size(), per_token);
  r.ok = fn(x.data(), x.size(), r.column());
  return r;
}

// Of group g: every code within half a step of x * s, none beyond 127, the sums theirs.
void expect_codes(const Quantized& r, const Guarded<float>& x, std::size_t g, float s) {
  int sum = 0;
  int half = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const int q = r.q[g * kGroup + i];
    EXPECT_LE(std::fabs(x[g * kGroup + i] * s - static_cast<float>(q)), 0.5F);
    EXPECT_LE(std::abs(q), 127);
    sum += q;
    if (i < kGroup / 2) half += q;
  }
  EXPECT_EQ(r.sum[g], sum);
  EXPECT_EQ(r.half_sum[g], half);
}

float largest(const float* x, std::size_t n) {
  float max = 0;
  for (std::size_t i = 0; i < n; ++i) max = std::max(max, std::fabs(x[i]));
  return max;
}

TEST(QuantizeScalar, IsTheDefinition) {
  Guarded<float> x = random_floats(3 * kGroup, 1);
  for (std::size_t i = kGroup; i < 2 * kGroup; ++i) x[i] *= 1e-31F;  // below 1e-30: zeros
  const Quantized r = quantize(scalar::quantize, x, false);
  ASSERT_TRUE(r.ok);
  for (std::size_t g = 0; g < 3; ++g) {
    const float max = largest(x.data() + g * kGroup, kGroup);
    expect_codes(r, x, g, g == 1 ? 0.0F : 127 / max);
    EXPECT_EQ(r.scale[g], g == 1 ? 0.0F : max / 127);
  }
}

TEST(QuantizeScalar, RoundsTiesToEven) {
  Guarded<float> x(kGroup);
  for (std::size_t i = 0; i < kGroup; ++i) x[i] = static_cast<float>(i) - 0.5F;
  x[0] = 127;  // the largest: inv is 1
  const Quantized r = quantize(scalar::quantize, x, false);
  for (std::size_t i = 1; i < kGroup; ++i) EXPECT_EQ(r.q[i], i / 2 * 2) << x[i];
}

// With the second factor the largest magnitude is below the floor of 1e-5.
TEST(QuantizeScalar, PerTokenIsTheDefinition) {
  for (const float factor : {1.0F, 1e-8F}) {
    Guarded<float> x = random_floats(3 * kGroup, 1);
    for (float& v : x) v *= factor;
    const float s = 127 / std::max(largest(x.data(), x.size()), 1e-5F);
    const Quantized r = quantize(scalar::quantize, x, true);
    ASSERT_TRUE(r.ok);
    EXPECT_EQ(r.token_scale[0], s);
    for (std::size_t g = 0; g < 3; ++g) {
      expect_codes(r, x, g, s);
      EXPECT_EQ(r.scale[g], 1 / s);
    }
  }
}

class Quantize : public EveryIsa {};

TEST_P(Quantize, EqualsScalar) {
  for (const bool per_token : {false, true}) {
    for (const std::size_t groups : {1, 2, 5}) {
      for (const float factor : {1.0F, 1e-4F, 1e-6F, 1e-29F, 1e-31F, 0.0F, 1e38F}) {
        Guarded<float> x = random_floats(groups * kGroup, groups);
        for (float& v : x) v *= factor;
        expect_same(quantize(k_->quantize, x, per_token), quantize(scalar::quantize, x, per_token),
                    std::to_string(groups) + " groups * " + std::to_string(factor));
      }
    }
  }
}

TEST_P(Quantize, IntegersAndTiesEqualScalar) {
  Guarded<float> x(kGroup);
  for (std::size_t i = 0; i < kGroup; ++i) {
    x[i] = (static_cast<float>(i) - 0.5F) * (i % 3 == 0 ? -1.0F : 1.0F);
  }
  x[77] = -127;
  for (const bool per_token : {false, true}) {
    expect_same(quantize(k_->quantize, x, per_token), quantize(scalar::quantize, x, per_token),
                "ties");
  }
}

// All codes 127 or -127: the largest sums there are.
TEST_P(Quantize, LargestSums) {
  for (const float value : {1.0F, -1.0F}) {
    Guarded<float> x(2 * kGroup);
    std::fill(x.begin(), x.end(), value);
    for (const bool per_token : {false, true}) {
      const Quantized r = quantize(k_->quantize, x, per_token);
      EXPECT_TRUE(r.ok);
      for (std::size_t g = 0; g < 2; ++g) {
        EXPECT_EQ(r.sum[g], static_cast<int>(value) * 127 * 128);
        EXPECT_EQ(r.half_sum[g], static_cast<int>(value) * 127 * 64);
      }
    }
  }
}

TEST_P(Quantize, WithoutHalfSums) {
  const Guarded<float> x = random_floats(2 * kGroup, 8);
  const Quantized expected = quantize(scalar::quantize, x, false);
  for (QuantizeFn* const fn : {&scalar::quantize, k_->quantize}) {
    Quantized r(x.size(), false);
    Q8Column column = r.column();
    column.half_sum = nullptr;
    EXPECT_TRUE(fn(x.data(), x.size(), column));
    expect_same_bits(r.q, expected.q, "q");
    expect_same_bits(r.sum, expected.sum, "sum");
  }
}

TEST_P(Quantize, RefusesWhatIsNotFinite) {
  for (QuantizeFn* const fn : {&scalar::quantize, k_->quantize}) {
    for (const bool per_token : {false, true}) {
      for (const float bad : {kInf, -kInf, kNan, -kNan}) {
        for (std::size_t i = 0; i < 2 * kGroup; ++i) {
          Guarded<float> x = random_floats(2 * kGroup, 1);
          x[i] = bad;
          EXPECT_FALSE(quantize(fn, x, per_token).ok) << bad << " at " << i;
        }
      }
    }
  }
}

// One rotation and quantisation.
struct Rotated {
  Rotated(RotateQuantizeFn* fn, const Guarded<float>& x, const std::uint32_t* signs,
          std::size_t block, bool per_token)
      : y((x.size() + kGroup - 1) / kGroup * kGroup), quantized(y.size(), per_token) {
    for (float& v : y) v = kNan;  // so that padding has to be written
    quantized.ok = fn(x.data(), signs, x.size(), block, y.data(), y.size(), quantized.column());
  }
  Guarded<float> y;
  Quantized quantized;
};

// By its parts, which have tests of their own.
TEST(RotateQuantizeScalar, IsTheDefinition) {
  const std::size_t count = 192;  // a group and a half
  const Guarded<float> x = random_floats(count, 5);
  const auto signs = random_signs(count, 6);
  Guarded<float> y(256);
  scalar::rotate(x.data(), signs.data(), count, 64, y.data());
  for (const bool per_token : {false, true}) {
    const Rotated r(scalar::rotate_quantize, x, signs.data(), 64, per_token);
    expect_same_bits(r.y, y, "y");
    expect_same(r.quantized, quantize(scalar::quantize, y, per_token), "quantised");
  }
}

// Every size, with a part of a group at the end where the block is smaller.
TEST_P(Quantize, RotatedEqualsScalar) {
  for (std::size_t block = 1; block <= 16384; block *= 2) {
    for (const std::size_t runs : {1, 3, 40}) {
      const std::size_t count = block * runs;
      if (count > 3 * 16384) continue;
      const Guarded<float> x = random_floats(count, count);
      const auto signs = random_signs(count, 9);
      for (const std::uint32_t* s : {static_cast<const std::uint32_t*>(nullptr), signs.data()}) {
        for (const bool per_token : {false, true}) {
          const Rotated expected(scalar::rotate_quantize, x, s, block, per_token);
          const Rotated actual(k_->rotate_quantize, x, s, block, per_token);
          const std::string what = std::to_string(runs) + " of " + std::to_string(block);
          expect_same_bits(actual.y, expected.y, what);
          expect_same(actual.quantized, expected.quantized, what);
        }
      }
    }
  }
}

TEST_P(Quantize, RotatedRefusesWhatIsNotFinite) {
  const std::size_t count = 512;
  for (RotateQuantizeFn* const fn : {&scalar::rotate_quantize, k_->rotate_quantize}) {
    for (const std::size_t block : {1, 64, 128, 256}) {
      for (const bool per_token : {false, true}) {
        for (const float bad : {kInf, kNan}) {
          for (const std::size_t i : {std::size_t{0}, std::size_t{200}, count - 1}) {
            Guarded<float> x = random_floats(count, 1);
            x[i] = bad;
            EXPECT_FALSE(Rotated(fn, x, nullptr, block, per_token).quantized.ok)
                << block << ": " << bad << " at " << i;
          }
        }
      }
    }
  }
}
TSQ_FOR_EVERY_ISA(Quantize);

}  // namespace
}  // namespace tsq::kernels::test
