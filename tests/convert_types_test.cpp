// Every foreign type in a file, converted: what is kept, what is widened, what --dense narrows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/errorf.h"
#include "base/half.h"
#include "convert_support.h"
#include "import/blocks.h"

namespace tsq {
namespace {

using convert::DenseEncoding;
using importer::SourceType;

// A type's blocks: scales as the type wants them, the rest any bytes, or codes below 3.
std::vector<std::byte> blocks_of(SourceType type, std::uint64_t weights, std::uint32_t seed) {
  const auto shape = importer::block_shape(type);
  std::vector<std::byte> bytes(weights / shape.weights * shape.bytes);
  Random random(seed);
  const bool codes =
      importer::can_hold_plus_2(type) || type == SourceType::i2_s || type == SourceType::iq2_bn;
  for (std::byte& byte : bytes) {
    byte = codes ? random.codes() : static_cast<std::byte>(random.below(256));
  }
  const auto put_scales = [&](std::size_t offset, std::size_t repeat) {
    std::uint16_t scale = 0;
    for (std::size_t b = 0; b < bytes.size() / shape.bytes; ++b) {
      if (b % repeat == 0) scale = random.scale();
      std::memcpy(bytes.data() + b * shape.bytes + offset, &scale, 2);
    }
  };
  switch (type) {
    case SourceType::q2_0:
      put_scales(0, 2);
      break;
    case SourceType::q6_k:
      put_scales(208, 1);
      break;
    case SourceType::stq1_0:
      put_scales(40, 1);
      break;
    case SourceType::i2_s:
    case SourceType::iq1_bn:
    case SourceType::iq2_bn:
      break;
    case SourceType::q5_1:
    case SourceType::q4_k:
    case SourceType::q5_k:
      put_scales(0, 1);
      put_scales(2, 1);
      break;
    default:
      put_scales(0, 1);
      break;
  }
  if (type == SourceType::i2_s) {
    const auto tail = gguf::f32_bytes({0.03125f, 0, 0, 0, 0, 0, 0, 0});
    bytes.insert(bytes.end(), tail.begin(), tail.end());
  }
  return bytes;
}

// The same in rows, each behind a scale of its own.
std::vector<std::byte> rows_of(SourceType type, std::uint64_t cols, std::uint64_t rows,
                               std::uint32_t seed) {
  const auto blocks = blocks_of(type, cols * rows, seed);
  if (importer::row_header_bytes(type) == 0) return blocks;
  const std::size_t bytes = blocks.size() / rows;
  Random random(seed);
  ByteWriter out;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint16_t scale = random.scale();
    if (type == SourceType::iq1_bn) {
      out.write(scale);
    } else {
      out.write(f16_to_f32(scale));
    }
    out.write_bytes(std::span(blocks).subspan(row * bytes, bytes));
  }
  return out.take();
}

struct TypeCase {
  const char* name;
  std::uint32_t id;
  SourceType type;
};
void PrintTo(const TypeCase& c, std::ostream* out) { *out << c.name; }

class ConvertTypes : public ConvertTest {
 protected:
  // A model with one matrix of this type, 'x'.
  static GgufBuilder model_with(std::uint32_t id, std::vector<std::uint64_t> dims,
                                std::vector<std::byte> data) {
    auto file = small_model();
    file.add("x", id, std::move(dims), std::move(data));
    return file;
  }
  // The stored values of x are those of the source.
  static void expect_same_values(const importer::Checkpoint& source, const format::File& file,
                                 const char* name = "x") {
    const auto tensor = std::ranges::find(source.tensors, name, &importer::Tensor::name);
    const format::TensorRecord& record = *file.find(name);
    std::vector<float> expected(tensor->cols()), actual(tensor->cols());
    for (std::uint64_t row = 0; row < tensor->rows(); ++row) {
      importer::decode_row(*tensor, row, expected.data());
      format::decode_row(record.shape(), file.bytes(record), row, actual.data());
      ASSERT_EQ(actual, expected) << name << ", row " << row;
    }
  }
  static ConvertOptions dense(DenseEncoding encoding) {
    ConvertOptions options;
    options.dense = encoding;
    return options;
  }
};

// ---- ternary ----

class TernaryTypes : public ConvertTypes, public testing::WithParamInterface<TypeCase> {};

TEST_P(TernaryTypes, KeepEveryValue) {
  const std::uint64_t width = importer::block_shape(GetParam().type).weights;
  for (const auto encoding : {TernaryEncoding::t1, TernaryEncoding::t2}) {
    for (const std::uint64_t blocks : {1u, 3u, 5u, 12u}) {
      for (const std::uint64_t rows : {33u, 64u}) {
        SCOPED_TRACE(
            stringf("%d blocks, %d rows", static_cast<int>(blocks), static_cast<int>(rows)));
        const std::uint64_t cols = width * blocks;
        auto data = rows_of(GetParam().type, cols, rows, static_cast<std::uint32_t>(blocks));
        // Pairs of equal scales must not run on from one row into the next.
        if (GetParam().type == SourceType::q2_0 && blocks % 2 != 0) {
          for (std::size_t b = 0; b < blocks * rows; ++b) {
            const std::uint16_t scale = static_cast<std::uint16_t>(0x2000 + b / blocks);
            std::memcpy(data.data() + 18 * b, &scale, 2);
          }
        }
        const auto file = model_with(GetParam().id, {cols, rows}, std::move(data));
        const auto bytes = file.build();
        const auto source = parse(bytes);
        ASSERT_TRUE(source) << source.error().message();
        ASSERT_EQ(source->tensors.back().type, GetParam().type);
        ConvertOptions options;
        options.encoding = encoding;
        const auto opened = make(file, options);
        EXPECT_EQ(opened.file.find("x")->encoding,
                  encoding == TernaryEncoding::t1 ? Encoding::t1 : Encoding::t2);
        expect_same_values(*source, opened.file);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TernaryTypes,
                         testing::Values(TypeCase{"Q1_0", gguf::kQ1_0, SourceType::q1_0},
                                         TypeCase{"Q2_0_64", gguf::kQ2_0, SourceType::q2_0},
                                         TypeCase{"Q2_0_128", gguf::kQ2_0, SourceType::pq2_0},
                                         TypeCase{"STQ1_0", gguf::kSTQ1_0, SourceType::stq1_0},
                                         TypeCase{"STQ1_0_42", gguf::kQ2_0, SourceType::stq1_0},
                                         TypeCase{"I2_S", gguf::kI2_S, SourceType::i2_s},
                                         TypeCase{"IQ1_BN", gguf::kIQ1_BN, SourceType::iq1_bn},
                                         TypeCase{"IQ2_BN", gguf::kIQ2_BN, SourceType::iq2_bn}),
                         [](const auto& test) { return std::string(test.param.name); });

// Rows of 2-bit codes with one 0 in each quad, behind an fp16 scale for each block.
std::vector<std::byte> quads(std::uint64_t cols, std::uint64_t rows, std::size_t block,
                             std::uint32_t unit) {
  Random random(9);
  ByteWriter out;
  std::vector<std::uint8_t> codes(format::kGroup);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t col = 0; col < cols; col += block) {
      if (col % format::kGroup == 0) {
        for (std::size_t q = 0; q < format::kGroup / 4; ++q) {
          const std::size_t zero = random.below(4);
          for (std::size_t p = 0; p < 4; ++p) {
            codes[format::s34_input(unit, q, p)] =
                static_cast<std::uint8_t>(p == zero ? 1 : 2 * random.below(2));
          }
        }
      }
      out.write(static_cast<std::uint16_t>(0x2c00 + row));
      for (std::size_t i = 0; i < block; i += 4) {
        const std::uint8_t* const c = codes.data() + col % format::kGroup + i;
        out.write(static_cast<std::uint8_t>(c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6));
      }
    }
  }
  return out.take();
}

class QuadTypes : public ConvertTypes, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(QuadTypes, BecomeS34Unasked) {
  const std::uint32_t unit = GetParam();
  for (const bool narrow : {false, true}) {
    const std::uint64_t cols = narrow ? 192 : 384;
    const std::size_t block = narrow ? 64 : 128;
    auto file =
        model_with(narrow ? gguf::kQ2_0 : gguf::kPQ2_0, {cols, 33}, quads(cols, 33, block, unit));
    const auto bytes = file.build();
    const auto source = parse(bytes);
    ASSERT_TRUE(source) << source.error().message();
    auto opened = make(file);
    EXPECT_EQ(opened.file.find("x")->encoding, Encoding::s34);
    EXPECT_EQ(opened.file.find("x")->flags, unit);
    EXPECT_EQ(opened.file.find("x")->zero_count, cols * 33 / 4);
    expect_same_values(*source, opened.file);

    ConvertOptions options;
    options.encoding = TernaryEncoding::t1;
    EXPECT_EQ(make(file, options).file.find("x")->encoding, Encoding::t1);
    // Four zeros at the end of the last row, of one quad or of four.
    file.tensor("x").data.back() = std::byte{0x55};
    opened = make(file);
    EXPECT_EQ(opened.file.find("x")->encoding, Encoding::t1);
    file.tensor("x").data.back() = std::byte{0xe9};  // 0, +1, +1, +2
    fs::remove(target());
    expect_refused(file, ErrorCode::unsupported, {"'x': row 32", "code 3"});
  }
}

TEST_P(QuadTypes, OfStqKeepTheirUnit) {
  const std::uint32_t unit = GetParam();
  auto file = model_with(gguf::kSTQ1_0, {512, 33}, blocks_of(SourceType::stq1_0, 512 * 33, 2));
  const auto bytes = file.build();
  const importer::Bytes parts[] = {bytes};
  const auto source = importer::parse_gguf(parts, {.stq_consecutive = unit == 0});
  ASSERT_TRUE(source);
  ASSERT_TRUE(convert::convert_checkpoint(*source, target()));
  const auto opened = open_sound(target());
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::s34);
  EXPECT_EQ(opened.file.find("x")->flags, unit);
  expect_same_values(*source, opened.file);
}

INSTANTIATE_TEST_SUITE_P(Every, QuadTypes, testing::Values(0u, format::kFlagStride16),
                         [](const auto& test) {
                           return std::string(test.param == 0 ? "consecutive" : "strided");
                         });

TEST_F(ConvertTypes, AssumedLayoutsReachTheFile) {
  const fs::path source = folder_.path() / "in.gguf";
  auto file = model_with(gguf::kI2_S, {192, 10}, blocks_of(SourceType::i2_s, 192 * 10, 1));
  file.add("y", gguf::kSTQ1_0, {256, 2}, blocks_of(SourceType::stq1_0, 512, 2));
  const auto bytes = file.build();
  std::ofstream(source, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const fs::path sources[] = {source};
  ConvertOptions options;
  options.layouts = {.i2s_64 = true, .stq_consecutive = true};
  const auto summary = convert::convert(sources, target(), options);
  ASSERT_TRUE(summary) << summary.error().message();
  const importer::Bytes parts[] = {bytes};
  const auto checkpoint = importer::parse_gguf(parts, options.layouts);
  ASSERT_TRUE(checkpoint);
  const auto opened = open_sound(target());
  expect_same_values(*checkpoint, opened.file, "x");
  expect_same_values(*checkpoint, opened.file, "y");
}

TEST_F(ConvertTypes, PlusTwoIsKeptAsQ4WhereAsked) {
  auto data = blocks_of(SourceType::q2_0, 128 * 40, 3);
  data[18 * 77 + 2] = std::byte{0xe4};  // 0, 1, 2, 3
  const auto file = model_with(gguf::kQ2_0, {128, 40}, data);
  expect_refused(file, ErrorCode::unsupported,
                 {"'x': row 38", "code 3 (+2)", "--dense q4 keeps its values"});
  expect_refused(file, ErrorCode::unsupported, {"'x': row 38"}, dense(DenseEncoding::q8));
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  const auto summary = convert_built(file, dense(DenseEncoding::q4));
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->ternary_as_q4, 1u);
  EXPECT_EQ(summary->narrowed_tensors, 1u);  // the embedding, from q8
  const auto opened = open_sound(target());
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::q4);
  EXPECT_EQ(opened.file.find("blk.0.attn_q.weight")->encoding, Encoding::t1);
  expect_same_values(*source, opened.file);
}

TEST_F(ConvertTypes, TwoScalesInAGroupBecomeHalfGroups) {
  auto data = blocks_of(SourceType::q2_0, 320 * 40, 3);
  for (std::size_t b = 0; b < 5 * 40; ++b) {
    const std::uint16_t scale = b == 5 * 33 + 3 ? 0x2801 : 0x2800;
    std::memcpy(data.data() + 18 * b, &scale, 2);
  }
  const auto file = model_with(gguf::kQ2_0, {320, 40}, data);
  ConvertOptions t1, t2, t1_or_q4 = dense(DenseEncoding::q4);
  t1.encoding = t1_or_q4.encoding = TernaryEncoding::t1;
  t2.encoding = TernaryEncoding::t2;
  expect_refused(file, ErrorCode::unsupported,
                 {"'x': row 33", "two scales in a group of 128", "--encoding auto and t2",
                  "--dense q4 keeps its values"},
                 t1);
  const auto bytes = file.build();
  const auto source = parse(bytes);
  for (const ConvertOptions& options : {ConvertOptions(), t2, dense(DenseEncoding::q4)}) {
    const auto opened = make(file, options);
    const format::TensorRecord& record = *opened.file.find("x");
    EXPECT_EQ(record.encoding, Encoding::t2);
    EXPECT_EQ(record.flags, format::kFlagHalfGroups);
    EXPECT_EQ(record.group_size, 64u);
    EXPECT_EQ(record.activation_quant, format::ActivationQuant::per_group);
    EXPECT_EQ(opened.file.header().critical_features, 2u);
    expect_same_values(*source, opened.file);
  }
  const auto opened = make(file, t1_or_q4);
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::q4);
  expect_same_values(*source, opened.file);
}

TEST_F(ConvertTypes, ScalesOfRowsAreKept) {
  auto data = rows_of(SourceType::iq2_bn, 64, 40, 1);
  const float scale = 0.1f;  // no fp16 number
  std::memcpy(data.data() + 20 * 39, &scale, 4);
  const auto file = model_with(gguf::kIQ2_BN, {64, 40}, data);
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  for (const auto encoding : {TernaryEncoding::automatic, TernaryEncoding::t2}) {
    ConvertOptions options;
    options.encoding = encoding;
    const auto opened = make(file, options);
    const format::TensorRecord& record = *opened.file.find("x");
    EXPECT_EQ(record.scale_kind, format::ScaleKind::per_row);
    EXPECT_EQ(opened.file.header().critical_features, 4u);
    EXPECT_EQ(opened.file.scales(record)[39], scale);
    expect_same_values(*source, opened.file);
  }
  fs::remove(target());
  data[20 * 38 + 4] = std::byte{0x30};
  expect_refused(model_with(gguf::kIQ2_BN, {64, 40}, data), ErrorCode::unsupported,
                 {"'x': row 38 holds the code 3, expected"});
}

TEST_F(ConvertTypes, TheScaleOfATensorIsKept) {
  auto data = blocks_of(SourceType::i2_s, 128 * 3, 3);
  const float scale = 0.037109f;
  std::memcpy(data.data() + 96, &scale, 4);
  const auto file = model_with(gguf::kI2_S, {128, 3}, data);
  const auto bytes = file.build();
  const auto source = parse(bytes);
  const auto opened = make(file);
  const format::TensorRecord& record = *opened.file.find("x");
  EXPECT_EQ(record.encoding, Encoding::t1);
  EXPECT_EQ(record.scale_kind, format::ScaleKind::per_tensor);
  EXPECT_EQ(record.activation_quant, format::ActivationQuant::per_group);
  EXPECT_EQ(opened.file.header().critical_features, 8u);
  EXPECT_EQ(opened.file.scales(record)[0], scale);
  expect_same_values(*source, opened.file);
}

TEST_F(ConvertTypes, OfBitNetQuantiseActivationsPerToken) {
  for (const char* const name : {"bitnet", "bitnet-25", "bitnet-b1.58", "llama"}) {
    auto file = model_with(gguf::kI2_S, {128, 3}, blocks_of(SourceType::i2_s, 128 * 3, 3));
    file.set("general.architecture", gguf::text(name));
    file.set(std::string(name) + ".embedding_length", gguf::u32(128));
    file.set(std::string(name) + ".block_count", gguf::u32(1));
    const auto opened = make(file);
    const auto expected = name == std::string_view("llama") ? format::ActivationQuant::per_group
                                                            : format::ActivationQuant::per_token;
    EXPECT_EQ(opened.file.find("x")->activation_quant, expected) << name;
    EXPECT_EQ(opened.file.find("blk.0.attn_q.weight")->activation_quant, expected) << name;
    EXPECT_EQ(opened.file.find("token_embd.weight")->activation_quant,
              format::ActivationQuant::none);
  }
}

TEST_F(ConvertTypes, I2sIsRefusedWhereItIsNotTernary) {
  auto data = blocks_of(SourceType::i2_s, 128 * 3, 3);
  data[70] = std::byte{0xc0};
  for (const auto encoding : {DenseEncoding::keep, DenseEncoding::q4}) {
    expect_refused(model_with(gguf::kI2_S, {128, 3}, data), ErrorCode::unsupported,
                   {"'x': row 2 holds the code 3, expected"}, dense(encoding));
  }
  data = blocks_of(SourceType::i2_s, 128 * 3, 3);
  const float infinite = HUGE_VALF;
  std::memcpy(data.data() + 96, &infinite, 4);
  expect_refused(model_with(gguf::kI2_S, {128, 3}, data), ErrorCode::damaged,
                 {"'x': row 0", "infinite"});
}

// ---- dense ----

const TypeCase kDenseTypes[] = {{"Q5_0", gguf::kQ5_0, SourceType::q5_0},
                                {"Q5_1", gguf::kQ5_1, SourceType::q5_1},
                                {"Q4_K", gguf::kQ4_K, SourceType::q4_k},
                                {"Q5_K", gguf::kQ5_K, SourceType::q5_k},
                                {"Q6_K", gguf::kQ6_K, SourceType::q6_k}};

class DenseTypes : public ConvertTypes, public testing::WithParamInterface<TypeCase> {};

TEST_P(DenseTypes, AreWidenedWithoutLoss) {
  const auto file = model_with(GetParam().id, {256, 7}, blocks_of(GetParam().type, 256 * 7, 3));
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  const auto summary = convert_built(file);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->widened_tensors, 1u);
  EXPECT_EQ(summary->widened_bytes, 4u * 256 * 7);
  EXPECT_EQ(summary->narrowed_tensors, 0u);
  const auto opened = open_sound(target());
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::f32);
  expect_same_values(*source, opened.file);
}

// Scales that are powers of two leave few bits in a product.
TEST_P(DenseTypes, BecomeF16WhereThatHoldsAll) {
  auto data = blocks_of(GetParam().type, 256 * 3, 3);
  const std::size_t block = importer::block_shape(GetParam().type).bytes;
  const bool q6 = GetParam().type == SourceType::q6_k;
  const std::uint16_t scale = 0x2c00;  // 2^-4
  for (std::size_t b = 0; b < data.size() / block; ++b) {
    std::memcpy(data.data() + b * block + (q6 ? 208 : 0), &scale, 2);
    if (!q6) std::memcpy(data.data() + b * block + 2, &scale, 2);
    // The scales of sub-blocks: small ones.
    for (std::size_t i = 0; q6 && i < 16; ++i) data[b * block + 192 + i] = std::byte{3};
  }
  auto file = model_with(GetParam().id, {256, 3}, data);
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  auto opened = make(file);
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::f16);
  expect_same_values(*source, opened.file);
  // One block with other scales, in the last row, and it is f32.
  const std::uint16_t odd = 0x2fff;
  std::memcpy(file.tensor("x").data.data() + data.size() - block + (q6 ? 208 : 0), &odd, 2);
  opened = make(file);
  EXPECT_EQ(opened.file.find("x")->encoding, Encoding::f32);
}

INSTANTIATE_TEST_SUITE_P(Every, DenseTypes, testing::ValuesIn(kDenseTypes),
                         [](const auto& test) { return std::string(test.param.name); });

// Values between -1 and 1.
std::vector<std::byte> some_f32(std::size_t n, std::uint32_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.below(1u << 24)) * 0x1p-23f - 1;
  return gguf::f32_bytes(values);
}

GgufBuilder dense_model() {
  auto file = small_model();
  file.add("f32", gguf::kF32, {64, 3}, some_f32(192, 1));
  file.add("f32_odd", gguf::kF32, {4, 64}, some_f32(256, 2));
  file.add("f32_vector", gguf::kF32, {64}, some_f32(64, 3));
  file.add("bf16", gguf::kBF16, {32, 5}, gguf::some_bytes(320, 5));
  file.add("f16", gguf::kF16, {32, 5}, gguf::some_bytes(320, 5));
  file.add("q8_0", gguf::kQ8_0, {96, 2}, gguf::some_bytes(6 * 34, 6));
  file.add("q4_0", gguf::kQ4_0, {64, 3}, gguf::some_bytes(6 * 18, 7));
  file.add("q4_1", gguf::kQ4_1, {32, 2, 2}, gguf::some_bytes(4 * 20, 8));
  file.add("q6_k", gguf::kQ6_K, {256, 2}, blocks_of(SourceType::q6_k, 512, 9));
  file.add("q5_0_vector", gguf::kQ5_0, {32}, blocks_of(SourceType::q5_0, 32, 9));
  return file;
}

struct Narrowing {
  const char* name;
  DenseEncoding encoding;
  std::vector<std::pair<const char*, Encoding>> expected;
  std::size_t narrowed;
  double error;  // of values of at most 1
};
void PrintTo(const Narrowing& narrowing, std::ostream* out) { *out << narrowing.name; }

class Narrowed : public ConvertTypes, public testing::WithParamInterface<Narrowing> {};

// What would take more bits is narrowed; nothing else changes.
TEST_P(Narrowed, TakesWhatIsWider) {
  const auto file = dense_model();
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  const auto summary = convert_built(file, dense(GetParam().encoding));
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->narrowed_tensors, GetParam().narrowed);
  const auto opened = open_sound(target());
  for (const auto& [name, encoding] : GetParam().expected) {
    EXPECT_EQ(opened.file.find(name)->encoding, encoding) << name;
  }
  for (const char* name : {"f32_odd", "f32_vector", "q4_0", "q4_1", "q5_0_vector",
                           "blk.0.attn_norm.weight", "blk.0.attn_q.weight"}) {
    expect_same_values(*source, opened.file, name);
  }
  EXPECT_EQ(opened.file.find("q4_1")->flags, format::kFlagMinimum);
  EXPECT_EQ(opened.file.find("blk.0.attn_q.weight")->encoding, Encoding::t1);
  const format::TensorRecord& record = *opened.file.find("f32");
  const auto& values = file.tensors[3].data;
  ASSERT_EQ(file.tensors[3].name, "f32");
  double largest = 0;
  for (std::uint64_t row = 0; row < 3; ++row) {
    std::vector<float> stored(64), expected(64);
    format::decode_row(record.shape(), opened.file.bytes(record), row, stored.data());
    std::memcpy(expected.data(), values.data() + 256 * row, 256);
    for (std::size_t i = 0; i < 64; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(stored[i] - expected[i])));
    }
  }
  EXPECT_LE(largest, GetParam().error);
  EXPECT_GT(largest, 0);
}

// Errors: half a step of an fp16 number below 1; of 1/127; of 1/8, and as much again where the end
// of the short side is cut off. A scale errs by 2^-11 of itself, times up to 127 or 8.
INSTANTIATE_TEST_SUITE_P(Every, Narrowed,
                         testing::Values(Narrowing{"f16",
                                                   DenseEncoding::f16,
                                                   {{"f32", Encoding::f16},
                                                    {"bf16", Encoding::bf16},
                                                    {"f16", Encoding::f16},
                                                    {"q8_0", Encoding::q8},
                                                    {"q6_k", Encoding::f16}},
                                                   2,
                                                   0x1p-12},
                                         Narrowing{"q8",
                                                   DenseEncoding::q8,
                                                   {{"f32", Encoding::q8},
                                                    {"bf16", Encoding::q8},
                                                    {"f16", Encoding::q8},
                                                    {"q8_0", Encoding::q8},
                                                    {"q6_k", Encoding::q8}},
                                                   4,
                                                   0.5 / 127 + 0x1p-11},
                                         Narrowing{"q4",
                                                   DenseEncoding::q4,
                                                   {{"f32", Encoding::q4},
                                                    {"bf16", Encoding::q4},
                                                    {"f16", Encoding::q4},
                                                    {"q8_0", Encoding::q4},
                                                    {"q6_k", Encoding::q4}},
                                                   6,  // token_embd too
                                                   1.0 / 8 + 0x1p-11}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(ConvertTypes, NarrowingThatLosesNothingIsNotCalledNarrowing) {
  auto file = small_model();
  file.add("halves", gguf::kF32, {32, 1}, gguf::f32_bytes(std::vector<float>(32, 0.5f)));
  const auto summary = convert_built(file, dense(DenseEncoding::f16));
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->narrowed_tensors, 0u);
  EXPECT_EQ(open_sound(target()).file.find("halves")->encoding, Encoding::f16);
}

TEST_F(ConvertTypes, ValuesBeyondFp16AreRefused) {
  auto file = small_model();
  std::vector<float> values(96, 1);
  values[70] = 65520;
  file.add("large", gguf::kF32, {32, 3}, gguf::f32_bytes(values));
  expect_refused(file, ErrorCode::unsupported, {"'large': row 2", "too large for f16", "65504"},
                 dense(DenseEncoding::f16));
  EXPECT_TRUE(convert_built(file, dense(DenseEncoding::q8)));
  fs::remove(target());
  values[70] = 1e9f;
  file.tensor("large").data = gguf::f32_bytes(values);
  expect_refused(file, ErrorCode::unsupported, {"'large': row 2", "too large for q8"},
                 dense(DenseEncoding::q8));
}

// A probe is about the values that are stored, so a narrowed tensor must not fail its own.
TEST_F(ConvertTypes, RotatedMatricesCanBeNarrowed) {
  auto file = small_model();
  file.set("prism.hadamard.version", gguf::u32(1));
  file.set("prism.hadamard.block_size", gguf::u32(64));
  file.set("prism.hadamard.transform", gguf::text("normalized-sylvester-walsh-hadamard"));
  file.set("prism.hadamard.axis", gguf::text("input-last-dimension"));
  file.set("prism.hadamard.sign_mode", gguf::text("identity"));
  file.set("prism.hadamard.weight_names", gguf::texts({"blk.0.ffn_up.weight"}));
  file.set("prism.hadamard.inverse_weight_names", gguf::texts({}));
  file.add("blk.0.ffn_up.weight", gguf::kF32, {128, 40}, some_f32(128 * 40, 5));
  for (const auto encoding :
       {DenseEncoding::keep, DenseEncoding::f16, DenseEncoding::q8, DenseEncoding::q4}) {
    const auto opened = make(file, dense(encoding));
    EXPECT_GE(opened.file.rotation_probes().size(), 4u);
  }
}

}  // namespace
}  // namespace tsq
