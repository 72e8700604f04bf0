// The plain codecs: against blocks written by other programs, against FORMAT.md position by
// position, and there and back.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/half.h"
#include "format/encodings.h"

namespace tsq::format {
namespace {

using nlohmann::json;

const json& golden() {
  static const json blocks =
      json::parse(std::ifstream(std::string(TSQ_TEST_DATA) + "/golden-blocks.json"));
  return blocks;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Numbers stand in the file as the shortest decimal of an f32; infinities and NaN as strings.
float number(const json& value) {
  if (value.is_string()) return std::strtof(value.get<std::string>().c_str(), nullptr);
  return static_cast<float>(value.get<double>());
}

void expect_same(float found, float expected, const std::string& where) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << where;
  } else {
    EXPECT_EQ(found, expected) << where;
  }
}

TEST(Half, EveryF16SurvivesTheWayThroughF32) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) {
      EXPECT_EQ(bits & 0x7c00, 0x7c00u);
      EXPECT_NE(bits & 0x03ff, 0u);
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), half) << bits;
    }
  }
}

TEST(Half, F16ByItsDefinition) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const double fraction = static_cast<double>(bits & 0x3ff) / 1024;
    const double value =
        exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    EXPECT_EQ(f16_to_f32(static_cast<std::uint16_t>(bits)), value);
    EXPECT_EQ(f16_to_f32(static_cast<std::uint16_t>(bits | 0x8000)), -value);
  }
}

TEST(Half, F32ToF16RoundsToNearestEven) {
  // Every finite value has a neighbour above; the middle goes to the even one, what is next to the
  // middle to the nearer one.
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
    const float middle = (f16_to_f32(low) + f16_to_f32(high)) / 2;  // exact: 12 bits
    EXPECT_EQ(f32_to_f16(middle), bits % 2 == 0 ? low : high) << bits;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << bits;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e30f)), high) << bits;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
}

TEST(Golden, HalfTables) {
  const std::pair<const char*, float (*)(std::uint16_t)> tables[] = {{"f16_to_f32", f16_to_f32},
                                                                     {"bf16_to_f32", bf16_to_f32}};
  for (const auto& [name, convert] : tables) {
    const json& table = golden()[name];
    ASSERT_GT(table.size(), 10u);
    for (const auto& entry : table) {
      const auto bits = std::stoul(entry[0].get<std::string>(), nullptr, 16);
      expect_same(convert(static_cast<std::uint16_t>(bits)), number(entry[1]), entry.dump());
    }
  }
}

TEST(Golden, DenseBlocks) {
  const struct {
    const char* name;
    Encoding encoding;
    std::uint32_t flags;
  } types[] = {
      {"Q8_0", Encoding::q8, 0}, {"Q4_0", Encoding::q4, 0}, {"Q4_1", Encoding::q4, kFlagMinimum}};
  for (const auto& type : types) {
    const json& blocks = golden()["types"][type.name]["blocks"];
    ASSERT_GE(blocks.size(), 5u);
    for (const json& block : blocks) {
      const auto bytes = from_hex(block["hex"]);
      const Shape shape{type.encoding, type.flags, ScaleKind::none, 1, 32};
      ASSERT_EQ(body_bytes(shape), bytes.size());
      float values[32];
      decode_row(shape, {bytes}, 0, values);
      for (std::size_t i = 0; i < 32; ++i)
        expect_same(values[i], number(block["values"][i]),
                    std::string(type.name) + " " + block["name"].get<std::string>());
    }
  }
}

TEST(Golden, TernaryByteTable) {
  // 256 words of five digits; ours are the same digits, and the 13 bytes without a code word are
  // those that another byte decodes like.
  const auto table = golden()["types"]["PTQ1_0"]["byte_table"]["digits"].get<std::string>();
  std::size_t existing = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto digits = t1_digits(static_cast<std::uint8_t>(byte));
    for (std::size_t d = 0; d < 5; ++d)
      EXPECT_EQ(digits[d], table[6 * byte + d] - '0') << "byte " << byte;
    if (t1_byte_exists(static_cast<std::uint8_t>(byte))) ++existing;
  }
  EXPECT_EQ(existing, 243u);
  EXPECT_EQ(t1_byte(0, 0, 0, 0, 0), 0);
  EXPECT_EQ(t1_byte(1, 1, 1, 1, 1), 128);
  EXPECT_EQ(t1_byte(2, 2, 2, 2, 2), 255);
  EXPECT_EQ(t1_byte(2, 0, 1, 1, 0), 184);
  EXPECT_EQ(t1_byte(0, 1, 2, 0, 1), 49);
  EXPECT_EQ(t1_byte(0, 0, 0, 0, 1), 2);
}

// Where FORMAT.md puts the code of (row, input), computed anew from its text.
struct Place {
  std::size_t byte;
  unsigned digit;  // t2: plane p; t1: digit d
};

Place t2_place(std::size_t row, std::size_t input) {
  const std::size_t g = input / 128, k = input % 128;
  for (std::size_t c = 0; c < 8; ++c)
    for (unsigned p = 0; p < 4; ++p)
      for (std::size_t j = 0; j < 4; ++j)
        if (k == 16 * c + 4 * p + j) return {1088 * g + 64 + 128 * c + 4 * row + j, p};
  std::abort();
}

Place t1_place(std::size_t groups, std::size_t row, std::size_t input) {
  const std::size_t block = input / 640, k = input % 640;
  const std::size_t r = std::min<std::size_t>(5, groups - 5 * block), start = 4416 * block;
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t j = 0; j < 4; ++j)
      for (unsigned d = 0; d < r; ++d)
        if (k == 128 * d + 120 + 4 * t + j) return {start + 64 * r + 128 * t + 4 * row + j, d};
  for (std::size_t g = 0; g < r; ++g)
    for (std::size_t c = 0; c < 6; ++c)
      for (std::size_t j = 0; j < 4; ++j)
        for (unsigned d = 0; d < 5; ++d)
          if (k == 128 * g + 20 * c + 4 * d + j)
            return {start + 64 * r + 256 + 768 * g + 128 * c + 4 * row + j, d};
  std::abort();
}

// A row block of t2 or t1 with a scale for each group.
Shape grouped(Encoding encoding, std::uint64_t cols) {
  return {encoding, 0, ScaleKind::per_group, 32, cols};
}

class RowBlock : public testing::TestWithParam<std::size_t> {};  // groups

TEST_P(RowBlock, EveryCodeLiesWhereFormatMdSays) {
  const std::size_t groups = GetParam(), cols = 128 * groups;
  const unsigned power[] = {81, 27, 9, 3, 1};
  std::vector<std::uint8_t> codes(32 * cols, 1);
  const std::vector<std::uint16_t> scales(32 * groups, 0);
  for (const Encoding encoding : {Encoding::t2, Encoding::t1}) {
    std::vector<std::byte> zeros(row_block_bytes(grouped(encoding, cols))), body(zeros.size());
    pack_row_block(grouped(encoding, cols), codes.data(), scales.data(), zeros.data());
    for (const std::size_t row : {0, 13, 31}) {
      for (std::size_t input = 0; input < cols; ++input) {
        std::uint8_t& code = codes[row * cols + input];
        for (const std::uint8_t value : {std::uint8_t{0}, std::uint8_t{2}}) {
          code = value;
          pack_row_block(grouped(encoding, cols), codes.data(), scales.data(), body.data());
          const Place place =
              encoding == Encoding::t2 ? t2_place(row, input) : t1_place(groups, row, input);
          auto expected = zeros;
          const int step = value == 2 ? 1 : -1;
          if (encoding == Encoding::t2) {
            expected[place.byte] = static_cast<std::byte>(0x55 + step * (1 << 2 * place.digit));
          } else {
            const unsigned q = 121 + step * static_cast<int>(power[place.digit]);
            expected[place.byte] = static_cast<std::byte>((256 * q + 242) / 243);
          }
          ASSERT_EQ(body, expected)
              << encoding_name(encoding) << " row " << row << " input " << input;
          ASSERT_EQ(ternary_code(grouped(encoding, cols), body.data(), row, input), value);
        }
        code = 1;
      }
    }
  }
}

TEST_P(RowBlock, EveryScaleLiesWhereFormatMdSays) {
  const std::size_t groups = GetParam(), cols = 128 * groups;
  const std::vector<std::uint8_t> codes(32 * cols, 1);
  std::vector<std::uint16_t> scales(32 * groups);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint16_t>(i + 1);
  for (const Encoding encoding : {Encoding::t2, Encoding::t1}) {
    std::vector<std::byte> body(row_block_bytes(grouped(encoding, cols)));
    pack_row_block(grouped(encoding, cols), codes.data(), scales.data(), body.data());
    for (std::size_t row = 0; row < 32; ++row) {
      for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t line =
            encoding == Encoding::t2 ? 1088 * g : 4416 * (g / 5) + 64 * (g % 5);
        std::uint16_t found;
        std::memcpy(&found, body.data() + line + 2 * row, 2);
        EXPECT_EQ(found, scales[row * groups + g]);
      }
    }
  }
}

TEST_P(RowBlock, UnpackIsTheInverse) {
  const std::size_t groups = GetParam(), cols = 128 * groups - 5;
  std::mt19937 random(static_cast<unsigned>(groups));
  std::vector<std::uint8_t> codes(32 * 128 * groups);
  std::vector<std::uint16_t> scales(32 * groups);
  for (auto& code : codes) code = static_cast<std::uint8_t>(random() % 3);
  for (auto& scale : scales) scale = static_cast<std::uint16_t>(random());
  for (const Encoding encoding : {Encoding::t2, Encoding::t1}) {
    std::vector<std::byte> body(row_block_bytes(grouped(encoding, cols)));
    pack_row_block(grouped(encoding, cols), codes.data(), scales.data(), body.data());
    std::vector<std::uint8_t> codes_back(codes.size());
    std::vector<std::uint16_t> scales_back(scales.size());
    EXPECT_TRUE(unpack_row_block(grouped(encoding, cols), body.data(), codes_back.data(),
                                 scales_back.data()));
    EXPECT_EQ(codes_back, codes);
    EXPECT_EQ(scales_back, scales);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, RowBlock, testing::Range<std::size_t>(1, 11));

TEST(RowBlock, UnpackReportsCodesThatDoNotExist) {
  std::vector<std::uint8_t> codes(32 * 256, 1);
  std::vector<std::uint16_t> scales(64, 0);
  const auto is_sound = [&](Encoding encoding, std::size_t at, unsigned value) {
    const std::vector<std::uint8_t> zeros(codes.size(), 1);
    std::vector<std::byte> body(row_block_bytes(grouped(encoding, 256)));
    pack_row_block(grouped(encoding, 256), zeros.data(), scales.data(), body.data());
    body[at] = static_cast<std::byte>(value);
    return unpack_row_block(grouped(encoding, 256), body.data(), codes.data(), scales.data());
  };
  EXPECT_TRUE(is_sound(Encoding::t2, 64, 0xaa));
  EXPECT_FALSE(is_sound(Encoding::t2, 64, 0xab));
  EXPECT_FALSE(is_sound(Encoding::t2, 1088 + 64 + 1023, 0xc0));
  // 1 is no byte: ceil(256 q / 243) steps from 0 to 2.
  EXPECT_TRUE(is_sound(Encoding::t1, 384, 2));
  EXPECT_FALSE(is_sound(Encoding::t1, 384, 1));
  EXPECT_FALSE(is_sound(Encoding::t1, 1919, 1));
  // In the tail of two groups the digits 2, 3, 4 have to be 1: q = 81 a + 27 b + 13.
  EXPECT_TRUE(is_sound(Encoding::t1, 128, (256 * (2 * 81 + 13) + 242) / 243));
  EXPECT_FALSE(is_sound(Encoding::t1, 128, (256 * (2 * 81 + 14) + 242) / 243));
}

class RoundTrip : public testing::TestWithParam<std::tuple<Encoding, std::size_t, std::size_t>> {};

TEST_P(RoundTrip, DecodeRowGivesCodeTimesScale) {
  const auto [encoding, rows, cols] = GetParam();
  const Shape shape{encoding, 0, ScaleKind::per_group, rows, cols};
  const std::size_t stored = padded_cols(encoding, cols), groups = stored / 128;
  std::mt19937 random(static_cast<unsigned>(rows * 10007 + cols));
  std::vector<std::uint8_t> codes(padded_rows(encoding, rows) * stored, 1);
  std::vector<std::uint16_t> scales(padded_rows(encoding, rows) * groups, 0);
  std::vector<std::byte> body(*body_bytes(shape));
  for (auto& code : codes) code = static_cast<std::uint8_t>(random() % 3);
  for (auto& scale : scales) scale = static_cast<std::uint16_t>(0x0001 + random() % 0x7b00);
  const std::size_t block = row_block_bytes(grouped(encoding, cols));
  ASSERT_EQ(body.size(), (rows + 31) / 32 * block);
  for (std::size_t b = 0; b < (rows + 31) / 32; ++b)
    pack_row_block(grouped(encoding, cols), &codes[32 * b * stored], &scales[32 * b * groups],
                   body.data() + b * block);
  std::vector<float> values(cols);
  for (std::size_t row = 0; row < rows; ++row) {
    decode_row(shape, {body}, row, values.data());
    for (std::size_t col = 0; col < cols; ++col) {
      const int weight = codes[row * stored + col] - 1;
      ASSERT_EQ(values[col],
                static_cast<float>(weight) * f16_to_f32(scales[row * groups + col / 128]))
          << row << " " << col;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RoundTrip,
    testing::Combine(testing::Values(Encoding::t2, Encoding::t1), testing::Values(1, 3, 17, 32, 33),
                     testing::Values(1, 100, 128, 129, 300, 384, 512, 600, 640, 641, 900, 1408)));

TEST(DenseRow, EveryRowOfEveryEncodingByItsDefinition) {
  // Rows of 40 inputs are stored as 64. Values are small integers: exact everywhere.
  constexpr std::size_t kRows = 3, kCols = 40;
  const auto value = [](std::size_t row, std::size_t col) {
    return static_cast<int>((7 * row + col) % 16);
  };
  const auto put16 = [](std::vector<std::byte>& body, std::size_t at, std::uint16_t bits) {
    std::memcpy(body.data() + at, &bits, 2);
  };
  const struct {
    Encoding encoding;
    std::uint32_t flags;
    std::size_t row_bytes;
  } cases[] = {{Encoding::f32, 0, 256}, {Encoding::f16, 0, 128},          {Encoding::bf16, 0, 128},
               {Encoding::q8, 0, 68},   {Encoding::q4, kFlagMinimum, 40}, {Encoding::q4, 0, 36}};
  for (const auto& c : cases) {
    const Shape shape{c.encoding, c.flags, ScaleKind::none, kRows, kCols};
    ASSERT_EQ(body_bytes(shape), kRows * c.row_bytes) << encoding_name(c.encoding);
    ASSERT_EQ(dense_row_bytes(c.encoding, c.flags, kCols), c.row_bytes);
    std::vector<std::byte> body(kRows * c.row_bytes);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t col = 0; col < kCols; ++col) {
        const std::size_t at = row * c.row_bytes, block = col / 32, i = col % 32;
        const auto v = static_cast<float>(value(row, col));
        const auto nibble = static_cast<std::byte>(value(row, col) << (i < 16 ? 0 : 4));
        if (c.encoding == Encoding::f32) std::memcpy(body.data() + at + 4 * col, &v, 4);
        if (c.encoding == Encoding::f16) put16(body, at + 2 * col, f32_to_f16(v));
        if (c.encoding == Encoding::bf16)
          put16(body, at + 2 * col,
                static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16));
        if (c.encoding == Encoding::q8) {
          put16(body, at + 34 * block, 0x4000);  // d = 2
          body[at + 34 * block + 2 + i] = static_cast<std::byte>(-value(row, col));
        }
        if (c.encoding == Encoding::q4) {
          const std::size_t head = c.flags != 0 ? 4 : 2;
          const std::size_t start = at + (16 + head) * block;
          put16(body, start, 0x4000);
          if (c.flags != 0) put16(body, start + 2, 0xc600);  // m = -6
          body[start + head + i % 16] |= nibble;
        }
      }
    }
    for (std::size_t row = 0; row < kRows; ++row) {
      float values[kCols];
      decode_row(shape, {body}, row, values);
      for (std::size_t col = 0; col < kCols; ++col) {
        const int v = value(row, col);
        const int expected = c.encoding == Encoding::q8   ? -2 * v
                             : c.encoding != Encoding::q4 ? v
                             : c.flags != 0               ? 2 * v - 6
                                                          : 2 * (v - 8);
        ASSERT_EQ(values[col], expected) << encoding_name(c.encoding) << " " << row << " " << col;
      }
    }
  }
}

TEST(DecodeRowPart, IsThatPartOfTheRow) {
  using enum Encoding;
  std::mt19937 random(7);
  for (const Encoding encoding : {f32, f16, bf16, q8, q4, t2, t1, s34}) {
    const ScaleKind kind = is_ternary(encoding) ? ScaleKind::per_group : ScaleKind::none;
    for (const std::uint64_t cols : {4, 640, 1404, 1408, 2000}) {
      const Shape shape{encoding, 0, kind, 2, cols};
      std::vector<std::byte> body(*body_bytes(shape));
      for (std::byte& byte : body) byte = static_cast<std::byte>(random());
      std::vector<float> whole(cols);
      decode_row(shape, {body}, 1, whole.data());
      for (const std::uint64_t first : {0, 1, 127, 128, 639, 640, 1279, 1280, 2000}) {
        for (const std::uint64_t n : {0, 1, 128, 513, 641, 2000}) {
          if (first > cols || n > cols - first) continue;
          std::vector<float> part(n);
          decode_row_part(shape, {body}, 1, first, part);
          if (n == 0) continue;  // memcmp takes no null pointer
          ASSERT_EQ(std::memcmp(part.data(), whole.data() + first, 4 * n), 0)  // NaNs too
              << encoding_name(encoding) << " " << cols << ": " << n << " from " << first;
        }
      }
    }
  }
}

// The sizes that FORMAT.md draws.
TEST(Sizes, AreThoseOfFormatMd) {
  using enum Encoding;
  const auto size = [](Encoding encoding, ScaleKind kind, std::uint32_t flags, std::uint64_t rows,
                       std::uint64_t cols) {
    return body_bytes({encoding, flags, kind, rows, cols});
  };
  const std::uint64_t t1_sizes[] = {1088, 1920, 2752, 3584, 4416};
  for (std::uint64_t r = 1; r <= 5; ++r) {
    EXPECT_EQ(size(t1, ScaleKind::per_group, 0, 32, 128 * r), t1_sizes[r - 1]);
    EXPECT_EQ(size(t1, ScaleKind::per_row, 0, 32, 128 * r), 768 * r + 256);
    EXPECT_EQ(size(t1, ScaleKind::per_group, 0, 33, 640 * 3 + 128 * r - 1),
              2 * (3 * 4416 + t1_sizes[r - 1]));
  }
  EXPECT_EQ(size(t2, ScaleKind::per_group, 0, 1, 1), 1088u);
  EXPECT_EQ(size(t2, ScaleKind::per_group, kFlagHalfGroups, 33, 129), 4 * 1152u);
  EXPECT_EQ(size(t2, ScaleKind::per_tensor, 0, 64, 256), 4 * 1024u);
  EXPECT_EQ(size(s34, ScaleKind::per_group, 0, 32, 256), 2 * 704u);
  EXPECT_EQ(size(s34, ScaleKind::per_row, kFlagStride16, 32, 256), 2 * 640u);
  EXPECT_EQ(scale_bytes({t2, 0, ScaleKind::per_row, 33, 128}), 4 * 64u);
  EXPECT_EQ(scale_bytes({t2, 0, ScaleKind::per_tensor, 33, 128}), 4u);
  EXPECT_EQ(scale_bytes({t2, 0, ScaleKind::per_group, 33, 128}), 0u);
  EXPECT_EQ(group_size({t2, kFlagHalfGroups, ScaleKind::per_group, 1, 1}), 64u);
  EXPECT_EQ(group_size({t1, 0, ScaleKind::per_group, 1, 1}), 128u);
  EXPECT_EQ(group_size({t2, 0, ScaleKind::per_row, 1, 1}), 0u);
  EXPECT_EQ(group_size({q4, 0, ScaleKind::none, 1, 1}), 32u);
  EXPECT_EQ(group_size({bf16, 0, ScaleKind::none, 1, 1}), 0u);
}

TEST(Sizes, SayWhenTheyWrap) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  for (const Encoding encoding : {Encoding::f32, Encoding::q4, Encoding::t2, Encoding::t1}) {
    const ScaleKind kind = is_ternary(encoding) ? ScaleKind::per_group : ScaleKind::none;
    EXPECT_EQ(body_bytes({encoding, 0, kind, 1, kMost}), std::nullopt);
    EXPECT_EQ(body_bytes({encoding, 0, kind, kMost, 1}), std::nullopt);
    EXPECT_EQ(body_bytes({encoding, 0, kind, std::uint64_t{1} << 62, 128}), std::nullopt);
    EXPECT_NE(body_bytes({encoding, 0, kind, 1, std::uint64_t{1} << 40}), std::nullopt);
  }
  EXPECT_EQ(scale_bytes({Encoding::t2, 0, ScaleKind::per_row, kMost, 1}), std::nullopt);
  EXPECT_EQ(scale_bytes({Encoding::t2, 0, ScaleKind::per_row, kMost / 4, 1}), std::nullopt);
}

}  // namespace
}  // namespace tsq::format
