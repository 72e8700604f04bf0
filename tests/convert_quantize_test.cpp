// Rounding to q8 and q4.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "convert/quantize.h"
#include "convert_support.h"

namespace tsq {
namespace {

struct Quantiser {
  const char* name;
  bool (*quantize)(std::span<const float>, std::byte*);
  Encoding encoding;
  std::size_t bytes;
  int low, high;  // codes, as multiples of the scale
};
void PrintTo(const Quantiser& quantiser, std::ostream* out) { *out << quantiser.name; }

class Quantise : public testing::TestWithParam<Quantiser> {
 protected:
  std::vector<float> round_trip(const std::vector<float>& values) const {
    std::vector<std::byte> blocks(values.size() / 32 * GetParam().bytes);
    EXPECT_TRUE(GetParam().quantize(values, blocks.data()));
    std::memcpy(&scale_, blocks.data(), 2);
    const format::Shape shape = {GetParam().encoding, 0, format::ScaleKind::none, 1, values.size()};
    std::vector<float> stored(values.size());
    format::decode_row(shape, {blocks}, 0, stored.data());
    return stored;
  }
  mutable std::uint16_t scale_ = 0;
};

TEST_P(Quantise, TakesTheNearestCode) {
  Random random(1);
  for (int n = 0; n < 200; ++n) {
    const float spread = std::exp2(static_cast<float>(random.below(30)) - 20);
    std::vector<float> values(32);
    for (float& value : values) {
      value = (static_cast<float>(random.below(1u << 24)) * 0x1p-23f - 1) * spread;
    }
    const auto stored = round_trip(values);
    const float scale = f16_to_f32(scale_);
    for (std::size_t i = 0; i < 32; ++i) {
      const float error = std::abs(stored[i] - values[i]);
      for (int code = GetParam().low; code <= GetParam().high; ++code) {
        ASSERT_LE(error, std::abs(static_cast<float>(code) * scale - values[i]) * 1.0001f)
            << "value " << values[i] << " scale " << scale << " code " << code;
      }
    }
  }
}

TEST_P(Quantise, KeepsWhatItsCodesHold) {
  for (const float scale : {1.0f, -0.375f, 0x1p-20f}) {
    std::vector<float> values(64);
    for (std::size_t i = 0; i < 64; ++i) {
      const int range = GetParam().high - GetParam().low + 1;
      const int code = GetParam().low + static_cast<int>(i % 32) * 5 % range;
      values[i] = static_cast<float>(code) * scale;
    }
    values[0] = values[32] = static_cast<float>(GetParam().low) * scale;
    EXPECT_EQ(round_trip(values), values);
  }
  const std::vector<float> zeros(32);
  EXPECT_EQ(round_trip(zeros), zeros);
  const std::vector<float> tiny(32, 1e-30f);  // below every scale
  EXPECT_EQ(round_trip(tiny), zeros);
}

TEST_P(Quantise, RefusesAnInfiniteScale) {
  std::vector<std::byte> block(2 * GetParam().bytes);
  std::vector<float> values(64, 1);
  values[40] = -65519.0f * 127;
  EXPECT_EQ(GetParam().quantize(values, block.data()), GetParam().encoding == Encoding::q8);
  values[40] = -65520.0f * 127;
  EXPECT_FALSE(GetParam().quantize(values, block.data()));
  values[40] = 65519.0f * 8;
  EXPECT_TRUE(GetParam().quantize(values, block.data()));
}

INSTANTIATE_TEST_SUITE_P(
    Every, Quantise,
    testing::Values(Quantiser{"q8", convert::quantize_q8, Encoding::q8, 34, -127, 127},
                    Quantiser{"q4", convert::quantize_q4, Encoding::q4, 18, -8, 7}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tsq
