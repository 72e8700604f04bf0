// Blocks of foreign types against bytes and values that other programs made
// (data/golden-blocks.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/half.h"
#include "import/blocks.h"

namespace tsq {
namespace {

using importer::SourceType;
using nlohmann::json;

const json& golden() {
  static const json document =
      json::parse(std::ifstream(std::string(TSQ_TEST_DATA) + "/golden-blocks.json"));
  return document;
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// The shortest decimal of an f32, back to that f32.
float to_f32(const json& number) {
  const std::string text = number.is_string() ? number.get<std::string>() : number.dump();
  return std::strtof(text.c_str(), nullptr);
}

struct Case {
  const char* name;
  SourceType type;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class TernaryBlocks : public testing::TestWithParam<Case> {
 protected:
  const json& entry() const { return golden()["types"][GetParam().name]; }
  SourceType type() const { return GetParam().type; }
  std::size_t weights() const { return importer::block_shape(type()).weights; }

  struct Decoded {
    std::string codes;
    std::vector<std::uint16_t> scales;
    bool ternary;
  };
  Decoded decode(const std::vector<std::byte>& block) const {
    std::vector<std::uint8_t> codes(weights());
    std::vector<std::uint16_t> scales(weights() / importer::kScaleGroup);
    const bool ternary = importer::decode_ternary_row(type(), block, codes.data(), scales.data());
    std::string text;
    for (const std::uint8_t code : codes) text += static_cast<char>('0' + code);
    return {text, scales, ternary};
  }
};

TEST_P(TernaryBlocks, HaveTheirSize) {
  EXPECT_EQ(importer::block_shape(type()).weights, entry()["block_weights"].get<std::uint32_t>());
  EXPECT_EQ(importer::block_shape(type()).bytes, entry()["block_bytes"].get<std::uint32_t>());
  EXPECT_TRUE(importer::is_ternary(type()));
}

TEST_P(TernaryBlocks, DecodeAsTheirProgramsDo) {
  ASSERT_GE(entry()["blocks"].size(), 8u);
  for (const json& block : entry()["blocks"]) {
    SCOPED_TRACE(block["name"].get<std::string>());
    const auto bytes = from_hex(block["hex"].get<std::string>());
    ASSERT_EQ(bytes.size(), importer::block_shape(type()).bytes);
    const std::string codes = block["codes"].get<std::string>();
    const float scale = to_f32(block["scale"]);
    const Decoded decoded = decode(bytes);
    EXPECT_EQ(decoded.codes, codes);
    EXPECT_EQ(decoded.ternary, codes.find('3') == std::string::npos);
    for (const std::uint16_t bits : decoded.scales) EXPECT_EQ(f16_to_f32(bits), scale);

    std::vector<float> values(weights());
    importer::decode_row(type(), bytes, values.data());
    for (std::size_t i = 0; i < weights(); ++i) {
      EXPECT_EQ(values[i], static_cast<float>(codes[i] - '1') * scale) << "weight " << i;
    }
  }
}

class OneHotBlocks : public TernaryBlocks {};

TEST_P(OneHotBlocks, PutEachWeightInItsPlace) {
  const auto& map = entry()["one_hot"]["map"];
  ASSERT_EQ(map.size(), weights());
  for (std::size_t p = 0; p < weights(); ++p) {
    for (const int sign : {1, -1}) {
      auto block = from_hex(entry()["one_hot"]["base"].get<std::string>());
      block[map[p][0].get<std::size_t>()] =
          static_cast<std::byte>(map[p][sign == 1 ? 1 : 2].get<int>());
      std::string expected(weights(), '1');
      expected[p] = static_cast<char>('1' + sign);
      EXPECT_EQ(decode(block).codes, expected);
    }
  }
}

// A row of two blocks: each group gets its own scale.
TEST_P(TernaryBlocks, FollowEachOtherInARow) {
  const auto& blocks = entry()["blocks"];
  auto row = from_hex(blocks[0]["hex"].get<std::string>());
  const auto second = from_hex(blocks[1]["hex"].get<std::string>());
  row.insert(row.end(), second.begin(), second.end());
  std::vector<std::uint8_t> codes(2 * weights());
  std::vector<std::uint16_t> scales(2 * weights() / importer::kScaleGroup);
  EXPECT_EQ(importer::row_bytes(type(), 2 * weights()), row.size());
  EXPECT_TRUE(importer::decode_ternary_row(type(), row, codes.data(), scales.data()));
  EXPECT_EQ(f16_to_f32(scales.front()), to_f32(blocks[0]["scale"]));
  EXPECT_EQ(f16_to_f32(scales.back()), to_f32(blocks[1]["scale"]));
  EXPECT_EQ(codes[weights()], blocks[1]["codes"].get<std::string>()[0] - '0');
}

INSTANTIATE_TEST_SUITE_P(Every, TernaryBlocks,
                         testing::Values(Case{"PQ2_0", SourceType::pq2_0},
                                         Case{"PTQ1_0", SourceType::ptq1_0},
                                         Case{"TQ1_0", SourceType::tq1_0},
                                         Case{"TQ2_0", SourceType::tq2_0}),
                         [](const auto& test) { return std::string(test.param.name); });

// PQ2_0 has no map; its position_digit blocks name every place.
INSTANTIATE_TEST_SUITE_P(Every, OneHotBlocks,
                         testing::Values(Case{"PTQ1_0", SourceType::ptq1_0},
                                         Case{"TQ1_0", SourceType::tq1_0},
                                         Case{"TQ2_0", SourceType::tq2_0}),
                         [](const auto& test) { return std::string(test.param.name); });

// All 256 byte values, also those that no encoder writes.
TEST(Ptq1Blocks, DecodeEveryByte) {
  const std::string digits = golden()["types"]["PTQ1_0"]["byte_table"]["digits"].get<std::string>();
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::vector<std::byte> block(28, static_cast<std::byte>(byte));
    std::vector<std::uint8_t> codes(128);
    std::uint16_t scale;
    importer::decode_ternary_row(SourceType::ptq1_0, block, codes.data(), &scale);
    for (std::size_t n = 0; n < 5; ++n) {
      const int expected = digits.at(6 * byte + n) - '0';
      EXPECT_EQ(codes[16 * n], expected) << "byte " << byte << " digit " << n;
      EXPECT_EQ(codes[80 + 8 * n], expected) << "byte " << byte << " digit " << n;
      if (n < 4) {
        EXPECT_EQ(codes[120 + 2 * n], expected) << "byte " << byte << " digit " << n;
      }
    }
  }
}

TEST(Ptq1Blocks, HoldTheSameWeightsAsPq2) {
  std::size_t pairs = 0;
  for (const json& pq2 : golden()["types"]["PQ2_0"]["blocks"]) {
    const std::string name = pq2["name"].get<std::string>();
    const std::string prefix = "same_weights_as_PTQ1_0_";
    if (!name.starts_with(prefix)) continue;
    for (const json& ptq1 : golden()["types"]["PTQ1_0"]["blocks"]) {
      if (ptq1["name"].get<std::string>() != name.substr(prefix.size())) continue;
      std::vector<float> a(128), b(128);
      importer::decode_row(SourceType::pq2_0, from_hex(pq2["hex"].get<std::string>()), a.data());
      importer::decode_row(SourceType::ptq1_0, from_hex(ptq1["hex"].get<std::string>()), b.data());
      EXPECT_EQ(a, b) << name;
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 3u);
}

class DenseBlocks : public testing::TestWithParam<Case> {};

TEST_P(DenseBlocks, DecodeAsGgmlDoes) {
  const json& entry = golden()["types"][GetParam().name];
  const auto shape = importer::block_shape(GetParam().type);
  EXPECT_EQ(shape.weights, entry["block_weights"].get<std::uint32_t>());
  EXPECT_EQ(shape.bytes, entry["block_bytes"].get<std::uint32_t>());
  EXPECT_FALSE(importer::is_ternary(GetParam().type));
  ASSERT_GE(entry["blocks"].size(), 5u);
  for (const json& block : entry["blocks"]) {
    SCOPED_TRACE(block["name"].get<std::string>());
    std::vector<float> values(shape.weights);
    importer::decode_row(GetParam().type, from_hex(block["hex"].get<std::string>()), values.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], to_f32(block["values"][i])) << "weight " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, DenseBlocks,
                         testing::Values(Case{"Q8_0", SourceType::q8_0},
                                         Case{"Q4_0", SourceType::q4_0},
                                         Case{"Q4_1", SourceType::q4_1}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(PlainValues, DecodeAndAreChecked) {
  for (const auto& [list, type] :
       {std::pair{"f16_to_f32", SourceType::f16}, std::pair{"bf16_to_f32", SourceType::bf16}}) {
    for (const json& pair : golden()[list]) {
      const auto bits =
          static_cast<std::uint16_t>(std::stoul(pair[0].get<std::string>(), nullptr, 16));
      const std::byte bytes[] = {static_cast<std::byte>(bits & 255),
                                 static_cast<std::byte>(bits >> 8)};
      float value = 0;
      importer::decode_row(type, bytes, &value);
      const float expected = to_f32(pair[1]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << pair;
      } else {
        EXPECT_EQ(value, expected) << pair;
      }
      EXPECT_EQ(importer::row_is_finite(type, bytes), std::isfinite(expected)) << pair;
    }
  }
}

// The fp16 fields of each type's block, at their offsets: an infinite one is noticed, and only
// there.
TEST(PlainValues, InfiniteScalesAreFound) {
  const struct {
    SourceType type;
    std::vector<std::size_t> scales;
  } kTypes[] = {{SourceType::f32, {}},      {SourceType::q8_0, {0}},  {SourceType::q4_0, {0}},
                {SourceType::q4_1, {0, 2}}, {SourceType::pq2_0, {0}}, {SourceType::ptq1_0, {26}},
                {SourceType::tq1_0, {52}},  {SourceType::tq2_0, {64}}};
  for (const auto& [type, scales] : kTypes) {
    const std::size_t bytes = importer::block_shape(type).bytes;
    for (std::size_t at = 0; at + 1 < 2 * bytes; at += 2) {
      std::vector<std::byte> row(2 * bytes, std::byte{0x11});
      row[at] = std::byte{0x00};
      row[at + 1] = std::byte{0xfc};
      if (type == SourceType::f32 && at % 4 == 2)
        row[at] = std::byte{0x80}, row[at + 1] = std::byte{0x7f};
      const bool infinite = type == SourceType::f32 ? at % 4 == 2
                                                    : std::find(scales.begin(), scales.end(),
                                                                at % bytes) != scales.end();
      EXPECT_EQ(importer::row_is_finite(type, row), !infinite)
          << importer::source_type_name(type) << " at " << at;
    }
  }
}

}  // namespace
}  // namespace tsq
