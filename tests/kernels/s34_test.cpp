#include "tests/kernels/s34_weights.h"

namespace tsq::kernels::test {
namespace {

TEST(S34Scalar, IsTheDefinition) {
  check_gemm_against_definition(kS34<false>);
  check_gemm_against_definition(kS34<true>);
}

// The table that the format's authors published: slots 0 to 15 without and with the sign.
TEST(S34Scalar, DecodesTheKnownQuads) {
  constexpr const char* kLanes[32] = {
      "0+++", "0+-+", "0++-", "0+--", "+0++", "+0-+", "+0+-", "+0--", "++0+", "+-0+", "++0-",
      "+-0-", "+++0", "+-+0", "++-0", "+--0", "0---", "0-+-", "0--+", "0-++", "-0--", "-0+-",
      "-0-+", "-0++", "--0-", "-+0-", "--0+", "-+0+", "---0", "-+-0", "--+0", "-++0"};
  for (const bool stride16 : {false, true}) {
    for (unsigned quad = 0; quad < 32; ++quad) {
      Body body(704);             // quad 5, the high nibble of byte 0 + 1, in row 0 of one group
      body[1] = std::byte{0x3C};  // the scale of row 0: 1.0
      body[64 + 1] = static_cast<std::byte>((quad & 15) << 4);
      body[576 + 16] = static_cast<std::byte>(quad >> 4 << 1);
      float values[kGroup];
      scalar::s34_row({body.data(), 1, kGroup, stride16}, 0, values);
      for (std::size_t p = 0; p < 4; ++p) {
        const char lane = kLanes[quad][p];
        EXPECT_EQ(values[stride16 ? 5 + 16 * p : 20 + p], lane == '+'   ? 1.0F
                                                          : lane == '-' ? -1.0F
                                                                        : 0.0F)
            << "quad " << quad << " lane " << p;
      }
    }
  }
}

class S34 : public EveryIsa {};
TEST_P(S34, EqualsScalarForEveryShape) {
  check_gemm_shapes(kS34<false>, *k_);
  check_gemm_shapes(kS34<true>, *k_);
}
TEST_P(S34, EqualsScalarForEveryScaling) {
  check_gemm_scalings(kS34<false>, *k_);
  check_gemm_scalings(kS34<true>, *k_);
}
TEST_P(S34, WritesItsRangeOnly) {
  check_gemm_ranges(kS34<false>, *k_);
  check_gemm_ranges(kS34<true>, *k_);
}
TEST_P(S34, EqualsScalarWithFloatActivations) {
  check_gemm_f32_shapes(kS34<false>, *k_);
  check_gemm_f32_shapes(kS34<true>, *k_);
}

// What overflows first: every weight but the zeros the same, the zeros all in one lane.
TEST_P(S34, EqualsScalarAtTheLimits) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const int weight : {-1, 1}) {
      for (const std::size_t n : {1, 2, 5, 8}) {
        const std::string what = "zeros in lane " + std::to_string(zero);
        const Q8 x = make_q8(n, 6 * kGroup, 6, 127);
        const Body consecutive = encode_s34<false>(make_s34(false, 64, x.cols, 5, zero, weight));
        compare_gemm(kS34<false>, *k_, {consecutive.data(), 64, x.cols, false}, x, what);
        const Body strided = encode_s34<true>(make_s34(true, 64, x.cols, 5, zero, weight));
        compare_gemm(kS34<true>, *k_, {strided.data(), 64, x.cols, true}, x, what);
      }
    }
  }
}

// All 256 bytes in every place of nibbles and signs.
TEST_P(S34, EqualsScalarOnEveryByte) {
  Body body(2 * 704);
  Random random(1);
  for (unsigned first = 0; first < 256; ++first) {
    for (std::size_t g = 0; g < 2; ++g) {
      std::byte* const group = body.data() + 704 * g;
      for (std::size_t i = 0; i < 704; ++i) group[i] = static_cast<std::byte>(first + 41 * i);
      for (std::size_t i = 0; i < 32; ++i) {
        const std::uint16_t scale = random_half(random);
        std::memcpy(group + 2 * i, &scale, sizeof scale);
      }
    }
    for (const std::size_t n : {1, 2}) {
      const Q8 x = make_q8(n, 2 * kGroup, first);
      const std::string what = "bytes from " + std::to_string(first);
      compare_gemm(kS34<false>, *k_, {body.data(), 32, x.cols, false}, x, what);
      compare_gemm(kS34<true>, *k_, {body.data(), 32, x.cols, true}, x, what);
      if (HasFatalFailure()) return;
    }
  }
}
TSQ_FOR_EVERY_ISA(S34);

}  // namespace
}  // namespace tsq::kernels::test
