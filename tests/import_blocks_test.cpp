// Blocks of foreign types against bytes and values that other programs made
// (data/golden-blocks.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
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

// A row of a tensor that owns nothing.
importer::Tensor row_of(SourceType type, std::span<const std::byte> bytes) {
  const auto shape = importer::block_shape(type);
  importer::Tensor tensor;
  tensor.name = "row";
  tensor.type = type;
  tensor.n_dims = 2;
  tensor.dims[0] = (bytes.size() - importer::row_header_bytes(type)) / shape.bytes * shape.weights;
  tensor.data = bytes;
  return tensor;
}

std::vector<float> values_of(const importer::Tensor& tensor) {
  std::vector<float> values(tensor.cols());
  importer::decode_row(tensor, 0, values.data());
  return values;
}

// A ternary row as text: its codes, and the scales.
struct Decoded {
  std::string codes;
  std::vector<std::uint16_t> scales;
  bool ternary;
};
Decoded decode(const importer::Tensor& tensor) {
  std::vector<std::uint8_t> codes(tensor.cols());
  std::vector<std::uint16_t> scales(tensor.cols() / importer::scale_group(tensor));
  const bool ternary = importer::decode_ternary_row(tensor, 0, codes.data(), scales.data());
  std::string text;
  for (const std::uint8_t code : codes) text += static_cast<char>('0' + code);
  return {text, scales, ternary};
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

  Decoded decode(const std::vector<std::byte>& block) const {
    return tsq::decode(row_of(type(), block));
  }
  // As every other type has them: Q1_0's bits are 0 for -1 and 1 for +1.
  std::string codes_of(const json& block) const {
    std::string codes = block["codes"].get<std::string>();
    if (type() == SourceType::q1_0) std::replace(codes.begin(), codes.end(), '1', '2');
    return codes;
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
    const std::string codes = codes_of(block);
    const float scale = to_f32(block["scale"]);
    const Decoded decoded = decode(bytes);
    EXPECT_EQ(decoded.codes, codes);
    EXPECT_EQ(decoded.ternary, codes.find('3') == std::string::npos);
    for (const std::uint16_t bits : decoded.scales) EXPECT_EQ(f16_to_f32(bits), scale);

    const auto values = values_of(row_of(type(), bytes));
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
  EXPECT_EQ(importer::row_bytes(type(), 2 * weights()), row.size());
  const Decoded decoded = decode(row);
  EXPECT_TRUE(decoded.ternary);
  EXPECT_EQ(f16_to_f32(decoded.scales.front()), to_f32(blocks[0]["scale"]));
  EXPECT_EQ(f16_to_f32(decoded.scales.back()), to_f32(blocks[1]["scale"]));
  EXPECT_EQ(decoded.codes, codes_of(blocks[0]) + codes_of(blocks[1]));
}

INSTANTIATE_TEST_SUITE_P(
    Every, TernaryBlocks,
    testing::Values(Case{"PQ2_0", SourceType::pq2_0}, Case{"PTQ1_0", SourceType::ptq1_0},
                    Case{"TQ1_0", SourceType::tq1_0}, Case{"TQ2_0", SourceType::tq2_0},
                    Case{"Q1_0", SourceType::q1_0}, Case{"Q2_0_g64", SourceType::q2_0},
                    Case{"Q2_0_g128_legacy", SourceType::pq2_0}),
    [](const auto& test) { return std::string(test.param.name); });

// PQ2_0 has no map; its position_digit blocks name every place.
INSTANTIATE_TEST_SUITE_P(Every, OneHotBlocks,
                         testing::Values(Case{"PTQ1_0", SourceType::ptq1_0},
                                         Case{"TQ1_0", SourceType::tq1_0},
                                         Case{"TQ2_0", SourceType::tq2_0},
                                         Case{"Q2_0_g64", SourceType::q2_0}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Q1Blocks, PutEachWeightInItsPlace) {
  const json& one_hot = golden()["types"]["Q1_0"]["one_hot"];
  ASSERT_EQ(one_hot["map"].size(), 128u);
  for (std::size_t p = 0; p < 128; ++p) {
    auto block = from_hex(one_hot["base"].get<std::string>());
    block[one_hot["map"][p][0].get<std::size_t>()] =
        static_cast<std::byte>(one_hot["map"][p][1].get<int>());
    std::string expected(128, '0');
    expected[p] = '2';
    EXPECT_EQ(decode(row_of(SourceType::q1_0, block)).codes, expected);
  }
}

// Codes of a text of -, 0 and +.
std::string codes_of_signs(std::string text) {
  for (char& c : text) c = c == '-' ? '0' : c == '0' ? '1' : '2';
  return text;
}

TEST(StqBlocks, DecodeAsTheirProgramsDo) {
  const json& entry = golden()["types"]["STQ1_0"];
  ASSERT_GE(entry["blocks"].size(), 16u);
  for (const json& block : entry["blocks"]) {
    SCOPED_TRACE(block["name"].get<std::string>());
    const auto bytes = from_hex(block["hex"].get<std::string>());
    ASSERT_EQ(bytes.size(), entry["block_bytes"].get<std::size_t>());
    const auto decoded = decode(row_of(SourceType::stq1_0, bytes));
    EXPECT_EQ(decoded.codes, codes_of_signs(block["values_over_d"].get<std::string>()));
    ASSERT_EQ(decoded.scales.size(), 2u);
    for (const std::uint16_t bits : decoded.scales) {
      EXPECT_EQ(f16_to_f32(bits), to_f32(block["scale"]));
    }
  }
}

TEST(StqBlocks, PutEachWeightInItsPlace) {
  const json& map = golden()["types"]["STQ1_0"]["one_minus"]["map"];
  ASSERT_EQ(map.size(), 256u);
  for (std::size_t p = 0; p < 256; ++p) {
    auto block = from_hex(golden()["types"]["STQ1_0"]["one_minus"]["base"].get<std::string>());
    for (std::size_t i = 0; i < map[p].size(); i += 2) {
      block[map[p][i].get<std::size_t>()] = static_cast<std::byte>(map[p][i + 1].get<int>());
    }
    const auto codes = decode(row_of(SourceType::stq1_0, block)).codes;
    EXPECT_EQ(codes.find('0'), p);
    EXPECT_EQ(std::count(codes.begin(), codes.end(), '0'), 1);
    EXPECT_EQ(std::count(codes.begin(), codes.end(), '1'), 64);
  }
}

TEST(StqBlocks, DecodeEveryNibbleAndSign) {
  const json& lanes = golden()["types"]["STQ1_0"]["codebook"]["lanes"];
  const std::string table = codes_of_signs([&] {
    std::string text = lanes.get<std::string>();
    std::erase(text, ' ');
    return text;
  }());
  ASSERT_EQ(table.size(), 4u * 32);
  for (std::size_t i = 0; i < 32; ++i) {
    std::vector<std::byte> block(42);
    block[0] = static_cast<std::byte>(i % 16);
    block[32] = static_cast<std::byte>(i / 16);
    const auto codes = decode(row_of(SourceType::stq1_0_consecutive, block)).codes;
    EXPECT_EQ(codes.substr(0, 4), table.substr(4 * i, 4)) << i;
  }
}

// The same bytes give sound quads either way: nothing in a block tells the layouts apart.
TEST(StqBlocks, AreOtherWeightsInTheOtherLayout) {
  const json& entry = golden()["types"]["STQ1_0"];
  const auto bytes = from_hex(entry["blocks"][0]["hex"].get<std::string>());
  const auto strided = decode(row_of(SourceType::stq1_0, bytes)).codes;
  const auto consecutive = decode(row_of(SourceType::stq1_0_consecutive, bytes)).codes;
  EXPECT_EQ(consecutive,
            codes_of_signs(entry["wrong_reading_of_random_0"]["values_over_d"].get<std::string>()));
  EXPECT_NE(strided, consecutive);
  for (std::size_t q = 0; q < 64; ++q) {
    const auto quad = consecutive.substr(4 * q, 4);
    EXPECT_EQ(std::count(quad.begin(), quad.end(), '1'), 1) << q;
    std::string lanes;
    for (std::size_t p = 0; p < 4; ++p) lanes += strided[64 * (q / 16) + q % 16 + 16 * p];
    EXPECT_EQ(std::count(lanes.begin(), lanes.end(), '1'), 1) << q;
  }
}

// A whole tensor: codes, then its scale.
TEST(I2sBlocks, DecodeAsBitNetDoes) {
  const json& blocks = golden()["types"]["I2_S"]["blocks"];
  ASSERT_GE(blocks.size(), 14u);
  for (const json& block : blocks) {
    SCOPED_TRACE(block["name"].get<std::string>());
    const auto bytes = from_hex(block["hex"].get<std::string>());
    const auto n = block["n"].get<std::size_t>();
    ASSERT_EQ(bytes.size(), n / 4 + 32);
    const bool wide = block["layout"] == 128;
    auto tensor =
        row_of(wide ? SourceType::i2_s : SourceType::i2_s_64, std::span(bytes).first(n / 4));
    tensor.scale = to_f32(block["scale"]);
    const std::string codes = block["codes"].get<std::string>();
    const auto decoded = decode(tensor);
    EXPECT_EQ(decoded.codes, codes);
    EXPECT_TRUE(decoded.ternary);
    EXPECT_EQ(decoded.scales[0], f32_to_f16(tensor.scale));
    const auto values = values_of(tensor);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(values[i], static_cast<float>(codes[i] - '1') * tensor.scale) << i;
    }
    if (!block["name"].get<std::string>().starts_with("random")) continue;
    tensor.type = wide ? SourceType::i2_s_64 : SourceType::i2_s;
    EXPECT_NE(decode(tensor).codes, codes);
  }
}

// Rows of several blocks behind one scale.
TEST(BitnetRows, DecodeAsTheirProgramDoes) {
  const auto document =
      json::parse(std::ifstream(std::string(TSQ_TEST_DATA) + "/golden-iq-bn.json"));
  for (const auto& [name, type] :
       {std::pair{"IQ1_BN", SourceType::iq1_bn}, std::pair{"IQ2_BN", SourceType::iq2_bn}}) {
    const json& rows = document["types"][name];
    ASSERT_EQ(rows.size(), 7u);
    for (const json& row : rows) {
      SCOPED_TRACE(row["name"].get<std::string>());
      const auto bytes = from_hex(row["hex"].get<std::string>());
      const std::string codes = row["codes"].get<std::string>();
      const auto tensor = row_of(type, bytes);
      ASSERT_EQ(tensor.cols(), codes.size());
      EXPECT_EQ(importer::row_bytes(type, tensor.cols()), bytes.size());
      const auto decoded = decode(tensor);
      EXPECT_EQ(decoded.codes, codes);
      EXPECT_TRUE(decoded.ternary);
      const float scale = to_f32(row["scale"]);
      EXPECT_EQ(decoded.scales, std::vector<std::uint16_t>(codes.size() / 64, f32_to_f16(scale)));
      const auto values = values_of(tensor);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        EXPECT_EQ(values[i], static_cast<float>(codes[i] - '1') * scale) << i;
      }
    }
  }
}

// All 256 byte values, also those that no encoder writes.
TEST(Ptq1Blocks, DecodeEveryByte) {
  const std::string digits = golden()["types"]["PTQ1_0"]["byte_table"]["digits"].get<std::string>();
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::vector<std::byte> block(28, static_cast<std::byte>(byte));
    const std::string codes = decode(row_of(SourceType::ptq1_0, block)).codes;
    for (std::size_t n = 0; n < 5; ++n) {
      const char expected = digits.at(6 * byte + n);
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
      const auto a = from_hex(pq2["hex"].get<std::string>());
      const auto b = from_hex(ptq1["hex"].get<std::string>());
      EXPECT_EQ(values_of(row_of(SourceType::pq2_0, a)), values_of(row_of(SourceType::ptq1_0, b)))
          << name;
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
    const auto bytes = from_hex(block["hex"].get<std::string>());
    const auto values = values_of(row_of(GetParam().type, bytes));
    ASSERT_EQ(values.size(), block["values"].size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], to_f32(block["values"][i])) << "weight " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, DenseBlocks,
    testing::Values(Case{"Q8_0", SourceType::q8_0}, Case{"Q4_0", SourceType::q4_0},
                    Case{"Q4_1", SourceType::q4_1}, Case{"Q5_0", SourceType::q5_0},
                    Case{"Q5_1", SourceType::q5_1}, Case{"Q4_K", SourceType::q4_k},
                    Case{"Q5_K", SourceType::q5_k}, Case{"Q6_K", SourceType::q6_k}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PlainValues, DecodeAndAreChecked) {
  for (const auto& [list, type] :
       {std::pair{"f16_to_f32", SourceType::f16}, std::pair{"bf16_to_f32", SourceType::bf16}}) {
    for (const json& pair : golden()[list]) {
      const auto bits =
          static_cast<std::uint16_t>(std::stoul(pair[0].get<std::string>(), nullptr, 16));
      const std::byte bytes[] = {static_cast<std::byte>(bits & 255),
                                 static_cast<std::byte>(bits >> 8)};
      const auto tensor = row_of(type, bytes);
      const float value = values_of(tensor)[0];
      const float expected = to_f32(pair[1]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << pair;
      } else {
        EXPECT_EQ(value, expected) << pair;
      }
      EXPECT_EQ(importer::row_is_finite(tensor, 0), std::isfinite(expected)) << pair;
    }
  }
}

// The fp16 fields of each type's block, at their offsets: an infinite one is noticed, and only
// there.
TEST(PlainValues, InfiniteScalesAreFound) {
  const struct {
    SourceType type;
    std::vector<std::size_t> scales;
  } kTypes[] = {{SourceType::f32, {}},      {SourceType::q8_0, {0}},    {SourceType::q4_0, {0}},
                {SourceType::q4_1, {0, 2}}, {SourceType::q5_0, {0}},    {SourceType::q5_1, {0, 2}},
                {SourceType::q4_k, {0, 2}}, {SourceType::q5_k, {0, 2}}, {SourceType::q6_k, {208}},
                {SourceType::pq2_0, {0}},   {SourceType::ptq1_0, {26}}, {SourceType::tq1_0, {52}},
                {SourceType::tq2_0, {64}},  {SourceType::q1_0, {0}},    {SourceType::q2_0, {0}},
                {SourceType::stq1_0, {40}}, {SourceType::i2_s, {}}};
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
      EXPECT_EQ(importer::row_is_finite(row_of(type, row), 0), !infinite)
          << importer::source_type_name(type) << " at " << at;
    }
  }
  std::vector<std::byte> row(2 + 13);
  row[1] = std::byte{0x7c};
  EXPECT_FALSE(importer::row_is_finite(row_of(SourceType::iq1_bn, row), 0));
  row[1] = std::byte{0x3c};
  EXPECT_TRUE(importer::row_is_finite(row_of(SourceType::iq1_bn, row), 0));
  const std::vector<std::byte> codes(32);
  auto tensor = row_of(SourceType::i2_s, codes);
  tensor.scale = HUGE_VALF;
  EXPECT_FALSE(importer::row_is_finite(tensor, 0));
}

}  // namespace
}  // namespace tsq
