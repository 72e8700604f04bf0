#include "tests/kernels/ternary_checks.h"

namespace tsq::kernels::test {
namespace {

// The input of lane p of quad q of a group.
std::size_t input_of(bool stride16, std::size_t q, std::size_t p) {
  return stride16 ? 64 * (q / 16) + q % 16 + 16 * p : 4 * q + p;
}

// Weights of which one in each quad is 0. zero: its lane, random where it is 4; weight: that of the
// other lanes, random where it is 2.
Ternary make_s34(bool stride16, std::size_t rows, std::size_t cols, std::uint64_t seed, int zero,
                 int weight) {
  Ternary t = make_ternary(rows, cols, seed, 0);
  Random random(seed + 1);
  for (std::size_t quad = 0; quad < rows * cols / 4; ++quad) {
    const int lane = zero == 4 ? random.between(0, 3) : zero;
    for (int p = 0; p < 4; ++p) {
      const int w = weight == 2 ? 2 * random.between(0, 1) - 1 : weight;
      const std::size_t input = input_of(stride16, quad % 32, static_cast<std::size_t>(p));
      t.weights[128 * (quad / 32) + input] = static_cast<std::int8_t>(p == lane ? 0 : w);
    }
  }
  return t;
}

template <bool kStride16>
Ternary random_s34(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  return make_s34(kStride16, rows, cols, seed, 4, 2);
}

// s34: per 32 rows and group, its scale lines, then 4 x 128 bytes of nibbles: byte 128 v + 4 r + j
// is quad 8 v + j of row r (low) and quad 8 v + 4 + j (high); then for each four quads 4 c + j 128
// bits, 4 r + j that of row r. Padding rows: nibble 0, sign 0.
template <bool kStride16>
Body encode_s34(const Ternary& t) {
  std::vector<std::byte> out;
  for (std::size_t block = 0; block < t.rows; block += 32) {
    for (std::size_t g = 0; g < t.groups(); ++g) {
      put_lines(out, t, block, g);
      const std::size_t nibbles = out.size();
      const std::size_t signs = nibbles + 512;
      out.resize(signs + 128);
      for (std::size_t r = 0; r < 32 && block + r < t.rows; ++r) {
        for (std::size_t q = 0; q < 32; ++q) {
          unsigned zero = 0;
          std::vector<bool> minus;  // of the other lanes
          for (unsigned p = 0; p < 4; ++p) {
            const unsigned code = t.code(block + r, 128 * g + input_of(kStride16, q, p));
            if (code == 1) {
              zero = p;
            } else {
              minus.push_back(code == 0);
            }
          }
          const bool sign = minus[0];
          const unsigned nibble = zero << 2 | static_cast<unsigned>(minus[1] != sign) |
                                  static_cast<unsigned>(minus[2] != sign) << 1;
          out[nibbles + 128 * (q / 8) + 4 * r + q % 4] |=
              static_cast<std::byte>(nibble << (q % 8 < 4 ? 0 : 4));
          const std::size_t bit = 4 * r + q % 4;
          out[signs + 16 * (q / 4) + bit / 8] |= static_cast<std::byte>(unsigned{sign} << bit % 8);
        }
      }
    }
  }
  return guarded(out);
}

template <bool kStride16>
constexpr Encoding kS34{encode_s34<kStride16>, &Kernels::s34_gemm,    &Kernels::s34_gemm_f32,
                        &Kernels::s34_row,     random_s34<kStride16>, kStride16};

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
