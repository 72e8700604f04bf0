// Seeded inputs, encoders written from the layouts' definition and the comparison of bits: what
// every kernel test needs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/q8.h"

namespace tsq::kernels::test {

// splitmix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  int between(int low, int high) {
    return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  // In [-1, 1), with exponents spread over 2^-8 to 1, so that sums round.
  float real() {
    const float unit = static_cast<float>(static_cast<std::int64_t>(bits()) >> 40) * 0x1p-23F;
    return std::ldexp(unit, -between(0, 8));
  }

 private:
  std::uint64_t state_;
};

inline Guarded<float> random_floats(std::size_t n, std::uint64_t seed) {
  Guarded<float> x(n);
  Random random(seed);
  for (float& v : x) v = random.real();
  return x;
}

// A bit for each of count elements, in whole words.
inline Guarded<std::uint32_t> random_signs(std::size_t count, std::uint64_t seed) {
  Guarded<std::uint32_t> signs((count + 31) / 32);
  Random random(seed);
  for (auto& word : signs) word = static_cast<std::uint32_t>(random.bits());
  return signs;
}

// The value of an fp16, by definition.
inline double half_value(std::uint16_t h) {
  const int exponent = h >> 10 & 31;
  const int fraction = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

// A random fp16 scale: of either sign, exponents 2^-8 to 2^-1.
inline std::uint16_t random_half(Random& random) {
  return static_cast<std::uint16_t>(random.between(0, 1) << 15 | random.between(7, 14) << 10 |
                                    random.between(0, 1023));
}

// Ternary weights before encoding, row-major.
struct Ternary {
  std::size_t rows;
  std::size_t cols;
  std::vector<std::int8_t> weights;
  ScaleKind kind = ScaleKind::per_group;
  std::vector<std::uint16_t> lines;  // fp16 bits, one a row and group (half group)
  Guarded<float> array{0};           // one for each row of whole row blocks, or one

  std::size_t groups() const { return cols / kGroup; }
  // Scale lines of a group.
  std::size_t n_lines() const {
    return kind == ScaleKind::per_group ? 1 : kind == ScaleKind::per_half_group ? 2 : 0;
  }
  // The code of a weight; padding rows hold weight 0.
  unsigned code(std::size_t row, std::size_t col) const {
    return row < rows ? static_cast<unsigned>(weights[row * cols + col] + 1) : 1U;
  }
  std::uint16_t line_scale(std::size_t row, std::size_t group, std::size_t line) const {
    return row < rows ? lines[(row * groups() + group) * n_lines() + line] : std::uint16_t{0};
  }
  float scale(std::size_t row, std::size_t col) const {
    if (kind == ScaleKind::per_row) return array[row];
    if (kind == ScaleKind::per_tensor) return array[0];
    return static_cast<float>(
        half_value(line_scale(row, col / kGroup, col % kGroup * n_lines() / kGroup)));
  }
};

// The same weights with random scales of this kind; f32 ones are not fp16 numbers.
inline Ternary with_scales(Ternary t, ScaleKind kind, std::uint64_t seed) {
  Random random(seed);
  t.kind = kind;
  t.lines.resize(t.rows * t.groups() * t.n_lines());
  for (auto& s : t.lines) s = random_half(random);
  if (kind == ScaleKind::per_tensor) t.array = Guarded<float>(1);
  if (kind == ScaleKind::per_row) t.array = Guarded<float>((t.rows + 31) / 32 * 32);
  const std::size_t n = kind == ScaleKind::per_row ? t.rows : t.array.size();
  for (std::size_t i = 0; i < n; ++i) t.array[i] = random.real() * 1.0000001F;
  return t;
}

// weight: -1, 0 or +1 for all of them; random where it is 2.
inline Ternary make_ternary(std::size_t rows, std::size_t cols, std::uint64_t seed,
                            int weight = 2) {
  Random random(seed);
  Ternary t{rows, cols, std::vector<std::int8_t>(rows * cols)};
  for (auto& w : t.weights) {
    w = static_cast<std::int8_t>(weight == 2 ? random.between(-1, 1) : weight);
  }
  return with_scales(std::move(t), ScaleKind::per_group, seed + 1);
}

inline Ternary random_ternary(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  return make_ternary(rows, cols, seed);
}

using Body = Guarded<std::byte>;

inline void put16(std::vector<std::byte>& out, std::uint16_t value) {
  out.push_back(static_cast<std::byte>(value & 255));
  out.push_back(static_cast<std::byte>(value >> 8));
}
inline Body guarded(const std::vector<std::byte>& bytes) {
  Body body(bytes.size());
  std::memcpy(body.data(), bytes.data(), bytes.size());
  return body;
}

// Each scale line of a group: 32 rows of a block.
inline void put_lines(std::vector<std::byte>& out, const Ternary& t, std::size_t block,
                      std::size_t group) {
  for (std::size_t line = 0; line < t.n_lines(); ++line) {
    for (std::size_t r = block; r < block + 32; ++r) put16(out, t.line_scale(r, group, line));
  }
}

// t2: per 32 rows and group, its scale lines, then for each of 8 chunks the four bytes of each row;
// byte j, bits 2 p and 2 p + 1: input 16 chunk + 4 p + j.
inline Body encode_t2(const Ternary& t) {
  std::vector<std::byte> out;
  for (std::size_t block = 0; block < t.rows; block += 32) {
    for (std::size_t g = 0; g < t.groups(); ++g) {
      put_lines(out, t, block, g);
      for (std::size_t c = 0; c < 8; ++c) {
        for (std::size_t r = block; r < block + 32; ++r) {
          for (std::size_t j = 0; j < 4; ++j) {
            unsigned byte = 0;
            for (std::size_t p = 0; p < 4; ++p) {
              byte |= t.code(r, 128 * g + 16 * c + 4 * p + j) << (2 * p);
            }
            out.push_back(static_cast<std::byte>(byte));
          }
        }
      }
    }
  }
  return guarded(out);
}

inline std::byte t1_byte(const unsigned (&digits)[5]) {
  unsigned q = 0;
  for (const unsigned d : digits) q = 3 * q + d;
  return static_cast<std::byte>((256 * q + 242) / 243);
}

// t1: per 32 rows, super-blocks of up to 5 groups: the scales of each group | two tail dwords of
// each row, digit d of byte j of dword t being input 120 + 4 t + j of group d | per group six body
// dwords of each row, digit d of byte j of dword c being input 20 c + 4 d + j.
inline Body encode_t1(const Ternary& t) {
  std::vector<std::byte> out;
  for (std::size_t block = 0; block < t.rows; block += 32) {
    for (std::size_t first = 0; first < t.groups(); first += 5) {
      const std::size_t last = std::min(first + 5, t.groups());
      for (std::size_t g = first; g < last; ++g) put_lines(out, t, block, g);
      for (std::size_t dword = 0; dword < 2; ++dword) {
        for (std::size_t r = block; r < block + 32; ++r) {
          for (std::size_t j = 0; j < 4; ++j) {
            unsigned digits[5] = {1, 1, 1, 1, 1};
            for (std::size_t g = first; g < last; ++g) {
              digits[g - first] = t.code(r, 128 * g + 120 + 4 * dword + j);
            }
            out.push_back(t1_byte(digits));
          }
        }
      }
      for (std::size_t g = first; g < last; ++g) {
        for (std::size_t c = 0; c < 6; ++c) {
          for (std::size_t r = block; r < block + 32; ++r) {
            for (std::size_t j = 0; j < 4; ++j) {
              unsigned digits[5];
              for (std::size_t d = 0; d < 5; ++d) {
                digits[d] = t.code(r, 128 * g + 20 * c + 4 * d + j);
              }
              out.push_back(t1_byte(digits));
            }
          }
        }
      }
    }
  }
  return guarded(out);
}

// n quantised columns; value: all of them +value or -value, column by column; random where 0.
// Per token, all scales of a column are the reciprocal of its token scale.
inline Q8 make_q8(std::size_t n, std::size_t cols, std::uint64_t seed, int value = 0,
                  bool per_token = false) {
  Random random(seed);
  Q8 x{n,
       cols,
       Guarded<std::int8_t>(n * cols),
       Guarded<float>(n * cols / kGroup),
       Guarded<std::int32_t>(n * cols / kGroup),
       Guarded<std::int32_t>(n * cols / kGroup),
       Guarded<float>(per_token ? n : 0)};
  for (std::size_t i = 0; i < n * cols; ++i) {
    const int sign = i / cols % 2 == 0 ? 1 : -1;
    x.q[i] = static_cast<std::int8_t>(value == 0 ? random.between(-127, 127) : sign * value);
    x.sum[i / kGroup] += x.q[i];
    if (i % kGroup < kGroup / 2) x.half_sum[i / kGroup] += x.q[i];
  }
  for (float& s : x.scale) s = std::fabs(random.real()) + 1e-3F;
  for (std::size_t c = 0; c < x.token_scale.size(); ++c) {
    x.token_scale[c] = 127.0F / x.scale[c * cols / kGroup];
    for (std::size_t g = c * cols / kGroup; g < (c + 1) * cols / kGroup; ++g) {
      x.scale[g] = 1.0F / x.token_scale[c];
    }
  }
  return x;
}

// y for n columns of rows outputs, filled with a pattern that no kernel writes.
inline Guarded<float> blank_outputs(std::size_t n) {
  Guarded<float> y(n);
  for (float& v : y) v = std::bit_cast<float>(0xFFABCDEFU);
  return y;
}

template <class T>
void expect_same_bits(const Guarded<T>& actual, const Guarded<T>& expected,
                      const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  if (std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(T)) == 0) return;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0)
        << what << ": element " << i << " of " << actual.size() << " is " << +actual[i] << ", not "
        << +expected[i];
  }
}

// The levels to hold against scalar: whatever this CPU has above it. DispatchTest fails where one
// of them has no table.
inline std::vector<Isa> vector_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::avx2, Isa::avxvnni, Isa::avx512}) {
    if (supports(detect_cpu(), isa)) isas.push_back(isa);
  }
  return isas;
}

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    k_ = table(GetParam());
    ASSERT_NE(k_, nullptr) << isa_name(GetParam()) << " is not built, but this CPU has it";
  }
  const Kernels* k_ = nullptr;
};

inline std::string isa_of(const testing::TestParamInfo<Isa>& test) {
  return std::string(isa_name(test.param));
}

#define TSQ_FOR_EVERY_ISA(Suite)                        \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Suite); \
  INSTANTIATE_TEST_SUITE_P(Cpu, Suite, testing::ValuesIn(vector_isas()), isa_of)

}  // namespace tsq::kernels::test
