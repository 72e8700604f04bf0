// Float tensors whose values are ternary are found, and nothing else is taken for one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "convert_support.h"

namespace tsq {
namespace {

using Values = std::vector<float>;

// The values in a float type that holds them exactly.
std::vector<std::byte> as_type(std::uint32_t type, const Values& values) {
  ByteWriter out;
  for (const float value : values) {
    if (type == gguf::kF32) {
      out.write(value);
    } else if (type == gguf::kF16) {
      const std::uint16_t bits = f32_to_f16(value);
      EXPECT_EQ(f16_to_f32(bits), value);
      out.write(bits);
    } else {
      const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      EXPECT_EQ(bf16_to_f32(bits), value);
      out.write(bits);
    }
  }
  return out.take();
}

// Rows of ternary values; each group of 128 has a scale of its own, a number of eight bits.
Values ternary_rows(std::size_t rows, std::size_t cols, std::uint32_t seed) {
  Random random(seed);
  Values values;
  for (std::size_t row = 0; row < rows; ++row) {
    float scale = 0;
    for (std::size_t col = 0; col < cols; ++col) {
      if (col % 128 == 0) scale = static_cast<float>(128 + random.below(128)) * 0x1p-12f;
      values.push_back(scale * static_cast<float>(static_cast<int>(random.below(3)) - 1));
    }
  }
  return values;
}

// One zero in every four neighbours.
Values sparse_rows(std::size_t rows, std::size_t cols, std::uint32_t seed) {
  Random random(seed);
  Values values = ternary_rows(rows, cols, seed);
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const std::size_t zero = random.below(4);
    for (std::size_t p = 0; p < 4; ++p) {
      values[i + p] = p == zero ? 0 : random.below(2) != 0 ? 0.25f : -0.25f;
    }
  }
  return values;
}

class TernaryValuesTest : public ConvertTest {
 protected:
  // Converts a model with this tensor and gives its record; every value is compared.
  format::TensorRecord stored(std::uint32_t type, std::vector<std::uint64_t> dims,
                              const Values& values, const ConvertOptions& options = {}) {
    auto file = small_model();
    const std::uint64_t cols = dims[0];
    file.add("x", type, std::move(dims), as_type(type, values));
    const auto summary = convert_built(file, options);
    EXPECT_TRUE(summary) << summary.error().message();
    summary_ = *summary;
    const auto opened = open_sound(target());
    const format::TensorRecord record = *opened.file.find("x");
    Values row(cols);
    for (std::uint64_t r = 0; r < record.rows() && options.dense == convert::DenseEncoding::keep;
         ++r) {
      format::decode_row(record.shape(), opened.file.bytes(record), r, row.data());
      for (std::size_t i = 0; i < row.size(); ++i) {
        EXPECT_EQ(row[i], values[r * cols + i]) << r << ' ' << i;
      }
    }
    return record;
  }
  Encoding encoding_of(std::uint64_t cols, const Values& values) {
    return stored(gguf::kF32, {cols, values.size() / cols}, values).encoding;
  }

  convert::Summary summary_;
};

TEST_F(TernaryValuesTest, EveryFloatTypeAndWidth) {
  for (const std::uint32_t type : {gguf::kF32, gguf::kF16, gguf::kBF16}) {
    for (const std::size_t cols : {32u, 64u, 100u, 128u, 320u, 700u}) {
      SCOPED_TRACE(cols);
      const Values values = ternary_rows(35, cols, static_cast<std::uint32_t>(cols) + type);
      const auto zeros = static_cast<std::uint64_t>(std::count(values.begin(), values.end(), 0.0f));
      const auto t1 = stored(type, {cols, 35}, values);
      EXPECT_EQ(t1.encoding, Encoding::t1);
      EXPECT_EQ(t1.zero_count, zeros);
      EXPECT_EQ(summary_.recognised_tensors, 1u);
      EXPECT_TRUE(summary_.beyond_f16.empty());
      ConvertOptions options;
      options.encoding = TernaryEncoding::t2;
      EXPECT_EQ(stored(type, {cols, 5, 7}, values, options).encoding, Encoding::t2);
    }
  }
}

TEST_F(TernaryValuesTest, ThreeOfFourBecomeS34) {
  for (const std::uint32_t type : {gguf::kF32, gguf::kF16, gguf::kBF16}) {
    for (const std::size_t cols : {64u, 100u, 320u}) {
      const auto record = stored(type, {cols, 33}, sparse_rows(33, cols, 7));
      EXPECT_EQ(record.encoding, Encoding::s34) << cols;
      EXPECT_EQ(record.zero_count, 33 * cols / 4);
    }
  }
  // Not of whole quads.
  EXPECT_EQ(stored(gguf::kF32, {98, 2}, ternary_rows(2, 98, 1)).encoding, Encoding::t1);
}

TEST_F(TernaryValuesTest, AreStoredAsTernaryWhateverDenseSays) {
  ConvertOptions options;
  options.dense = convert::DenseEncoding::q8;
  EXPECT_EQ(stored(gguf::kBF16, {128, 2}, ternary_rows(2, 128, 3), options).encoding, Encoding::t1);
}

TEST_F(TernaryValuesTest, AScaleThatF16DoesNotHold) {
  Values values = ternary_rows(40, 256, 1);
  for (float& value : values) value = value > 0 ? 0.1f : value < 0 ? -0.1f : 0;
  EXPECT_EQ(stored(gguf::kF32, {256, 40}, values).encoding, Encoding::f32);
  EXPECT_EQ(summary_.beyond_f16, std::vector<std::string>{"x"});
  EXPECT_EQ(summary_.recognised_tensors, 0u);
  // bf16 has more exponents.
  for (float& value : values) value = value > 0 ? 0x1p-40f : value < 0 ? -0x1p-40f : 0;
  EXPECT_EQ(stored(gguf::kBF16, {256, 40}, values).encoding, Encoding::bf16);
  EXPECT_EQ(summary_.beyond_f16, std::vector<std::string>{"x"});
  // The smallest and the largest fp16 numbers are held.
  for (const float scale : {0x1p-24f, 65504.0f}) {
    for (float& value : values) value = value > 0 ? scale : value < 0 ? -scale : 0;
    EXPECT_EQ(stored(gguf::kF32, {256, 40}, values).encoding, Encoding::t1) << scale;
  }
}

// Anywhere, the last row and the padded end of a row included.
TEST_F(TernaryValuesTest, OneValueThatIsOffByABit) {
  const Values values = ternary_rows(33, 320, 2);
  for (const std::size_t at : {0u, 127u, 128u, 319u, 33u * 320 - 1, 20u * 320 + 300}) {
    Values off = values;
    const float group_scale = std::abs(*std::find_if(
        off.begin() + static_cast<std::ptrdiff_t>(at / 320 * 320 + at % 320 / 128 * 128), off.end(),
        [](float value) { return value != 0; }));
    off[at] = std::nextafter(group_scale, 1.0f);
    EXPECT_EQ(encoding_of(320, off), Encoding::f32) << at;
    EXPECT_TRUE(summary_.beyond_f16.empty());
    off[at] = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(encoding_of(320, off), Encoding::f32) << at;
  }
}

TEST_F(TernaryValuesTest, GroupsOf32NeedOneScale) {
  Values values = sparse_rows(4, 256, 5);
  EXPECT_EQ(encoding_of(256, values), Encoding::s34);
  for (std::size_t i = 32; i < 64; ++i) values[i] *= 2;
  EXPECT_EQ(encoding_of(256, values), Encoding::f32);
  for (std::size_t i = 0; i < 128; ++i) values[i] = values[i] < 0 ? -1.0f : values[i] > 0 ? 1 : 0;
  EXPECT_EQ(encoding_of(256, values), Encoding::s34);
}

TEST_F(TernaryValuesTest, ZerosOfBothSignsAndGroupsOfZeros) {
  Values values = ternary_rows(33, 256, 4);
  for (std::size_t i = 128; i < 256; ++i) values[i] = i % 2 != 0 ? 0.0f : -0.0f;
  EXPECT_EQ(encoding_of(256, values), Encoding::t1);
  const auto opened = format::open(target());
  const format::TensorRecord& record = *opened->file.find("x");
  std::vector<std::uint8_t> codes(256);
  std::vector<std::uint16_t> scales(2);
  ASSERT_TRUE(format::unpack_row(record.shape(), opened->file.body(record), 0, codes.data(),
                                 scales.data()));
  EXPECT_NE(scales[0], 0);
  EXPECT_EQ(scales[1], 0);
  EXPECT_EQ(std::count(codes.begin() + 128, codes.end(), 1), 128);
}

// What a norm, a mask, a constant or an empty tensor is like.
TEST_F(TernaryValuesTest, TrivialTensorsStay) {
  EXPECT_EQ(encoding_of(128, Values(3 * 128, 0.0f)), Encoding::f32);
  EXPECT_EQ(encoding_of(128, Values(3 * 128, 1.0f)), Encoding::f32);
  EXPECT_EQ(encoding_of(128, Values(3 * 128, -1.0f)), Encoding::f32);
  Values mask(64 * 64, 0.0f);
  for (std::size_t i = 0; i < 64; ++i) mask[65 * i] = 1;
  EXPECT_EQ(encoding_of(64, mask), Encoding::f32);
  EXPECT_EQ(encoding_of(128, ternary_rows(1, 128, 1)), Encoding::f32);  // one row
  EXPECT_EQ(encoding_of(31, ternary_rows(4, 31, 1)), Encoding::f32);
  EXPECT_EQ(encoding_of(1, {1, -2, 3, -4}), Encoding::f32);
  EXPECT_EQ(summary_.recognised_tensors, 0u);
  EXPECT_EQ(stored(gguf::kF32, {256}, ternary_rows(1, 256, 1)).encoding, Encoding::f32);
}

TEST_F(TernaryValuesTest, ValuesThatAreNotFiniteAreRefusedAsEver) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Values values = ternary_rows(4, 128, 1);
    values[300] = bad;
    auto file = small_model();
    file.add("x", gguf::kF32, {128, 4}, gguf::f32_bytes(values));
    expect_refused(file, ErrorCode::damaged, {"'x': row 2", "infinite or not a number"});
    std::fill(values.begin() + 256, values.begin() + 384, bad);
    values[300] = -bad;
    file.tensor("x").data = gguf::f32_bytes(values);
    expect_refused(file, ErrorCode::damaged, {"'x': row 2", "infinite or not a number"});
  }
}

// A file that an earlier tsq made with the dense tensor; its probe says what that one computed.
TEST_F(TernaryValuesTest, AProbeOfTheDenseTensorIsNotKept) {
  auto file = with_tokenizer();
  file.add("x", gguf::kF32, {128, 2}, gguf::f32_bytes(ternary_rows(2, 128, 1)));
  const auto bytes = file.build();
  auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  checkpoint->token_probe = {
      .state = format::TokenProbeState::present, .tokens = {0, 1}, .mean_nll = 0.5, .greedy = {}};
  ASSERT_TRUE(convert::convert_checkpoint(*checkpoint, target()));
  EXPECT_EQ(open_sound(target()).file.token_probe().state, format::TokenProbeState::not_asked);
  checkpoint->tensors.pop_back();
  ASSERT_TRUE(convert::convert_checkpoint(*checkpoint, target()));
  EXPECT_EQ(open_sound(target()).file.token_probe().state, format::TokenProbeState::present);
}

}  // namespace
}  // namespace tsq
