// Weights that s34 can hold, and their encoder.
#pragma once

#include "tests/kernels/ternary_checks.h"

namespace tsq::kernels::test {

// The input of lane p of quad q of a group.
inline std::size_t input_of(bool stride16, std::size_t q, std::size_t p) {
  return stride16 ? 64 * (q / 16) + q % 16 + 16 * p : 4 * q + p;
}

// Weights of which one in each quad is 0. zero: its lane, random where it is 4; weight: that of the
// other lanes, random where it is 2.
inline Ternary make_s34(bool stride16, std::size_t rows, std::size_t cols, std::uint64_t seed,
                        int zero, int weight) {
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

}  // namespace tsq::kernels::test
