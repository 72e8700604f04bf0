#include <array>
#include <utility>

#include "tests/kernels/ternary_checks.h"

namespace tsq::kernels::test {
namespace {

constexpr Encoding kT1{encode_t1, &Kernels::t1_gemm, &Kernels::t1_gemm_f32, &Kernels::t1_row};

TEST(T1Scalar, IsTheDefinition) { check_gemm_against_definition(kT1); }

// Known bytes of the fixed-point form, from the format's description.
TEST(T1Scalar, DecodesTheKnownBytes) {
  const std::pair<unsigned, std::array<unsigned, 5>> known[] = {
      {0, {0, 0, 0, 0, 0}},  {128, {1, 1, 1, 1, 1}}, {255, {2, 2, 2, 2, 2}}, {184, {2, 0, 1, 1, 0}},
      {49, {0, 1, 2, 0, 1}}, {86, {1, 0, 0, 0, 0}},  {2, {0, 0, 0, 0, 1}}};
  for (const auto& [byte, digits] : known) {
    // One group: scales | tails | body; the first body dword of row 0, its byte 0.
    Body body(64 + 256 + 768);
    body[0] = std::byte{0x00};  // the scale of row 0: 1.0
    body[1] = std::byte{0x3C};
    body[64 + 256] = static_cast<std::byte>(byte);
    float values[kGroup];
    scalar::t1_row({body.data(), 1, kGroup}, 0, values);
    for (std::size_t d = 0; d < 5; ++d) {
      EXPECT_EQ(values[4 * d], static_cast<float>(digits[d]) - 1.0F) << "byte " << byte;
    }
  }
}

class T1 : public EveryIsa {};
TEST_P(T1, EqualsScalarForEveryShape) { check_gemm_shapes(kT1, *k_); }
TEST_P(T1, EqualsScalarForEveryScaling) { check_gemm_scalings(kT1, *k_); }
TEST_P(T1, EqualsScalarAtTheLimits) { check_gemm_extremes(kT1, *k_); }
TEST_P(T1, WritesItsRangeOnly) { check_gemm_ranges(kT1, *k_); }
TEST_P(T1, EqualsScalarWithFloatActivations) { check_gemm_f32_shapes(kT1, *k_); }

// All 256 bytes, the 13 that no encoder writes too, in every place of a body and a tail.
TEST_P(T1, EqualsScalarOnEveryByte) {
  for (std::size_t r = 1; r <= 5; ++r) {
    Body body(r * 64 + 256 + r * 768);
    const TernaryMatrix w{body.data(), 32, r * kGroup};
    Random random(r);
    for (std::size_t i = 0; i < r * 32; ++i) {
      const std::uint16_t scale = random_half(random);
      body[2 * i] = static_cast<std::byte>(scale & 255);
      body[2 * i + 1] = static_cast<std::byte>(scale >> 8);
    }
    for (unsigned first = 0; first < 256; ++first) {
      for (std::size_t i = r * 64; i < body.size(); ++i) {
        body[i] = static_cast<std::byte>(first + i / 4);  // another byte in each row and plane
      }
      for (const std::size_t n : {1, 2}) {
        compare_gemm(kT1, *k_, w, make_q8(n, w.cols, first), "bytes from " + std::to_string(first));
      }
      if (HasFatalFailure()) return;
    }
  }
}
TSQ_FOR_EVERY_ISA(T1);

}  // namespace
}  // namespace tsq::kernels::test
