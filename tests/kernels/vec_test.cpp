#include <limits>
#include <numbers>

#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(RmsNormScalar, IsTheDefinition) {
  for (const std::size_t n : {1, 15, 16, 17, 100}) {
    const Guarded<float> x = random_floats(n, n);
    const Guarded<float> w = random_floats(n, n + 1);
    float l[16] = {};
    for (std::size_t i = 0; i < n; ++i) l[i % 16] = std::fma(x[i], x[i], l[i % 16]);
    for (const int half : {8, 4, 2, 1}) {
      for (int i = 0; i < half; ++i) l[i] += l[i + half];
    }
    const float inv = 1 / std::sqrt(l[0] / static_cast<float>(n) + 1e-5F);
    Guarded<float> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      const float normed = x[i] * inv;
      expected[i] = normed * w[i];
    }
    Guarded<float> y(n);
    scalar::rms_norm(x.data(), w.data(), n, 1e-5F, y.data());
    expect_same_bits(y, expected, std::to_string(n));
  }
}

TEST(RopeScalar, IsTheDefinition) {
  for (const bool neox : {false, true}) {
    const std::size_t pairs = 6;
    Guarded<float> x = random_floats(2 * pairs, 1);
    const Guarded<float> before = x;
    const Guarded<float> c = random_floats(pairs, 2);
    const Guarded<float> s = random_floats(pairs, 3);
    scalar::rope(x.data(), c.data(), s.data(), pairs, neox);
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::size_t a = neox ? i : 2 * i;
      const std::size_t b = neox ? i + pairs : 2 * i + 1;
      const float ac = before[a] * c[i];
      const float bs = before[b] * s[i];
      const float as = before[a] * s[i];
      const float bc = before[b] * c[i];
      EXPECT_EQ(x[a], ac - bs);
      EXPECT_EQ(x[b], as + bc);
    }
  }
}

// All of the halves, by the definition; and to_f16 at each half, each midpoint and its neighbours.
TEST(F16Scalar, IsTheDefinition) {
  for (unsigned h = 0; h < 65536; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    float value;
    scalar::from_f16(&half, 1, &value);
    const unsigned exponent = h >> 10 & 31;
    if (exponent == 31) {
      const bool infinite = (h & 1023) == 0;
      EXPECT_TRUE(infinite ? std::isinf(value) : std::isnan(value)) << h;
      EXPECT_EQ(std::signbit(value), (h & 0x8000) != 0) << h;
      std::uint16_t back;
      scalar::to_f16(&value, 1, &back);
      EXPECT_EQ(back, infinite ? h : h | 0x200) << h;
      continue;
    }
    EXPECT_EQ(value, half_value(half)) << h;
    EXPECT_EQ(std::signbit(value), (h & 0x8000) != 0) << h;
    // Half-way to the next larger half (65536 stands for infinity): ties go to the even one.
    const double next = (h & 0x7FFF) == 0x7BFF ? std::copysign(65536.0, value)
                                               : half_value(static_cast<std::uint16_t>(h + 1));
    const auto middle = static_cast<float>((half_value(half) + next) / 2);
    const float inputs[] = {value, std::nextafter(middle, 0.0F), middle,
                            std::nextafter(middle, value < 0 || (h & 0x8000) != 0 ? -kInf : kInf)};
    const unsigned expected[] = {h, h, h + (h & 1), h + 1};
    std::uint16_t out[4];
    scalar::to_f16(inputs, 4, out);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], expected[i]) << h << ": " << inputs[i];
  }
}

// The error that kernels.h promises, over the whole range in steps that meet every exponent.
TEST(ExpScalar, IsWithinItsBound) {
  double worst = 0;
  for (float x = -87.33F; x < 88.72F; x += 0.000731F) {
    float y;
    scalar::exp(&x, 1, &y);
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(y - expected) / expected);
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(ExpScalar, EdgeCases) {
  const float least = std::numeric_limits<float>::min();
  const std::pair<float, float> exact[] = {
      {0.0F, 1.0F},    {-0.0F, 1.0F},   {1e-30F, 1.0F}, {-kInf, 0.0F}, {-1e30F, 0.0F},
      {-100.0F, 0.0F}, {-87.34F, 0.0F}, {88.73F, kInf}, {1e30F, kInf}, {kInf, kInf}};
  for (const auto& [x, expected] : exact) {
    float y;
    scalar::exp(&x, 1, &y);
    EXPECT_EQ(y, expected) << x;
    EXPECT_FALSE(std::signbit(y)) << x;
  }
  float y;
  scalar::exp(&kNan, 1, &y);
  EXPECT_TRUE(std::isnan(y));
  // Around both ends: monotonic, no subnormal, no infinity too early.
  for (float x = -87.3366F; x < -87.3364F; x = std::nextafter(x, 0.0F)) {
    scalar::exp(&x, 1, &y);
    EXPECT_TRUE(y == 0 || y >= least) << x;
    if (x > -87.33654F) {
      EXPECT_GE(y, least) << x;
    }
  }
  for (float x = 88.722F; x <= 88.72283F; x = std::nextafter(x, kInf)) {
    scalar::exp(&x, 1, &y);
    EXPECT_NEAR(y / std::exp(static_cast<double>(x)), 1, 2e-7) << x;
  }
}

TEST(SiluScalar, AndSigmoidAreTheDefinitions) {
  for (const float gate : {-100.0F, -3.5F, -0.0F, 0.0F, 0.25F, 7.0F, 100.0F}) {
    const float up = 1.5F;
    float y;
    scalar::silu_mul(&gate, &up, 1, &y);
    const double expected = gate / (1 + std::exp(-static_cast<double>(gate))) * up;
    // exp's 2e-7 and one rounding each in sum, quotient and product.
    EXPECT_NEAR(y, expected, std::fabs(expected) * (2e-7 + 3 * 0x1p-24) + 1e-37) << gate;
    scalar::sigmoid_mul(&gate, &up, 1, &y);
    const double gated = up / (1 + std::exp(-static_cast<double>(gate)));
    EXPECT_NEAR(y, gated, gated * (2e-7 + 2 * 0x1p-24) + 1e-37) << gate;
  }
}

// Half a unit of a float below 1 for the one rounding, and the double's own 1e-15.
TEST(RopeAngles, AreCosinesAndSines) {
  for (const std::int64_t position : {0, 1, 2, 77, 4096, 131071, 1048576}) {
    for (const double frequency : {1.0, 0.7853981633974483, 0.1, 3.1e-4, 1e-7}) {
      float c;
      float s;
      rope_angles(position, &frequency, 1, &c, &s);
      const double angle = static_cast<double>(position) * frequency;
      EXPECT_NEAR(c, std::cos(angle), 0x1p-25 + 1e-15) << angle;
      EXPECT_NEAR(s, std::sin(angle), 0x1p-25 + 1e-15) << angle;
    }
  }
}

TEST(RopePower, IsThePower) {
  for (const double base : {1.0, 2.0, 10000.0, 500000.0, 5e6, 0.3}) {
    for (double exponent = -2; exponent <= 2; exponent += 0.0625) {
      const double expected = std::pow(base, exponent);
      EXPECT_NEAR(rope_power(base, exponent) / expected, 1, 2e-14) << base << "^" << exponent;
    }
  }
  EXPECT_EQ(rope_power(10000.0, 0.0), 1.0);
  EXPECT_EQ(rope_power(2.0, -10.0), 0x1p-10);
}

constexpr std::size_t kLengths[] = {1,  2,  3,  7,  8,  9,  15, 16,  17,
                                    31, 32, 33, 63, 64, 65, 96, 127, 1000};

class Vec : public EveryIsa {};

TEST_P(Vec, RmsNormEqualsScalar) {
  for (const std::size_t n : kLengths) {
    const Guarded<float> x = random_floats(n, n);
    const Guarded<float> w = random_floats(n, n + 1);
    Guarded<float> expected(n);
    Guarded<float> actual(n);
    scalar::rms_norm(x.data(), w.data(), n, 1e-6F, expected.data());
    k_->rms_norm(x.data(), w.data(), n, 1e-6F, actual.data());
    expect_same_bits(actual, expected, std::to_string(n));
    Guarded<float> in_place = x;
    k_->rms_norm(in_place.data(), w.data(), n, 1e-6F, in_place.data());
    expect_same_bits(in_place, expected, "in place, " + std::to_string(n));
  }
}

TEST_P(Vec, RopeEqualsScalar) {
  for (const bool neox : {false, true}) {
    for (const std::size_t pairs : kLengths) {
      Guarded<float> expected = random_floats(2 * pairs, pairs);
      Guarded<float> actual = expected;
      const Guarded<float> c = random_floats(pairs, 2);
      const Guarded<float> s = random_floats(pairs, 3);
      scalar::rope(expected.data(), c.data(), s.data(), pairs, neox);
      k_->rope(actual.data(), c.data(), s.data(), pairs, neox);
      expect_same_bits(actual, expected, std::to_string(pairs) + (neox ? " neox" : ""));
    }
  }
}

TEST_P(Vec, GatesAndAddEqualScalar) {
  for (const std::size_t n : kLengths) {
    Guarded<float> gate = random_floats(n, n);
    for (std::size_t i = 0; i < n; ++i) gate[i] *= i % 3 == 0 ? 200.0F : 8.0F;
    const Guarded<float> up = random_floats(n, n + 1);
    Guarded<float> expected(n);
    Guarded<float> actual(n);
    scalar::silu_mul(gate.data(), up.data(), n, expected.data());
    k_->silu_mul(gate.data(), up.data(), n, actual.data());
    expect_same_bits(actual, expected, "silu_mul, " + std::to_string(n));
    Guarded<float> in_gate = gate;
    k_->silu_mul(in_gate.data(), up.data(), n, in_gate.data());
    expect_same_bits(in_gate, expected, "silu_mul in place of gate");
    Guarded<float> in_up = up;
    k_->silu_mul(gate.data(), in_up.data(), n, in_up.data());
    expect_same_bits(in_up, expected, "silu_mul in place of up");

    scalar::sigmoid_mul(gate.data(), up.data(), n, expected.data());
    k_->sigmoid_mul(gate.data(), up.data(), n, actual.data());
    expect_same_bits(actual, expected, "sigmoid_mul, " + std::to_string(n));
    in_up = up;
    k_->sigmoid_mul(gate.data(), in_up.data(), n, in_up.data());
    expect_same_bits(in_up, expected, "sigmoid_mul in place of x");

    expected = up;
    actual = up;
    scalar::add(gate.data(), n, expected.data());
    k_->add(gate.data(), n, actual.data());
    expect_same_bits(actual, expected, "add, " + std::to_string(n));
  }
}

TEST_P(Vec, F16EqualsScalar) {
  Guarded<std::uint16_t> halves(65536);
  for (unsigned h = 0; h < 65536; ++h) halves[h] = static_cast<std::uint16_t>(h);
  Guarded<float> expected(65536);
  Guarded<float> actual(65536);
  scalar::from_f16(halves.data(), 65536, expected.data());
  k_->from_f16(halves.data(), 65536, actual.data());
  expect_same_bits(actual, expected, "from_f16");

  Guarded<float> x(1 << 20);  // any bits at all
  Random random(4);
  for (float& v : x) v = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
  Guarded<std::uint16_t> expected_halves(x.size());
  Guarded<std::uint16_t> actual_halves(x.size());
  scalar::to_f16(x.data(), x.size(), expected_halves.data());
  k_->to_f16(x.data(), x.size(), actual_halves.data());
  expect_same_bits(actual_halves, expected_halves, "to_f16");

  for (const std::size_t n : kLengths) {
    const Guarded<float> values = random_floats(n, n);
    Guarded<std::uint16_t> expected_tail(n);
    Guarded<std::uint16_t> actual_tail(n);
    scalar::to_f16(values.data(), n, expected_tail.data());
    k_->to_f16(values.data(), n, actual_tail.data());
    expect_same_bits(actual_tail, expected_tail, "to_f16, " + std::to_string(n));
    Guarded<float> expected_back(n);
    Guarded<float> actual_back(n);
    scalar::from_f16(expected_tail.data(), n, expected_back.data());
    k_->from_f16(expected_tail.data(), n, actual_back.data());
    expect_same_bits(actual_back, expected_back, "from_f16, " + std::to_string(n));
  }
}

TEST_P(Vec, ExpEqualsScalar) {
  Guarded<float> x(1 << 20);  // any bits, and the range that matters twice as often
  Random random(5);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 3 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()))
                      : 100.0F * random.real();
  }
  const float edges[] = {0.0F,         -0.0F,       kInf,        -kInf,  kNan,   -87.3365479F,
                         -87.3365402F, 88.7228394F, 88.7228470F, 1e-45F, -1e-45F};
  std::copy(std::begin(edges), std::end(edges), x.begin());
  Guarded<float> expected(x.size());
  Guarded<float> actual(x.size());
  scalar::exp(x.data(), x.size(), expected.data());
  k_->exp(x.data(), x.size(), actual.data());
  expect_same_bits(actual, expected, "exp");
  for (const std::size_t n : kLengths) {
    Guarded<float> tail = random_floats(n, n);
    Guarded<float> expected_tail(n);
    scalar::exp(tail.data(), n, expected_tail.data());
    k_->exp(tail.data(), n, tail.data());
    expect_same_bits(tail, expected_tail, "exp in place, " + std::to_string(n));
  }
}
TSQ_FOR_EVERY_ISA(Vec);

}  // namespace
}  // namespace tsq::kernels::test
