// Type ids that say too little: what the sizes of the tensors decide.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gguf_builder.h"
#include "import/blocks.h"
#include "import/gguf.h"

namespace tsq {
namespace {

using gguf::GgufBuilder;
using importer::AssumedLayouts;
using importer::SourceType;

Result<importer::Checkpoint> parse(const std::vector<std::byte>& file,
                                   const AssumedLayouts& assumed = {}) {
  const importer::Bytes parts[] = {file};
  return importer::parse_gguf(parts, assumed);
}

GgufBuilder empty_model() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("llama"));
  return file;
}

// rows of 256 weights, 72 (Q2_0), 68 (PQ2_0) or 42 (STQ1_0) bytes each.
GgufBuilder& add_rows(GgufBuilder& file, const std::string& name, std::uint64_t rows,
                      std::size_t row_bytes, std::uint32_t id = gguf::kQ2_0) {
  return file.add(name, id, {256, rows}, gguf::some_bytes(rows * row_bytes, 7));
}

void expect_refused(const GgufBuilder& file, ErrorCode code,
                    const std::vector<std::string>& fragments) {
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), code) << checkpoint.error().message();
  for (const std::string& fragment : fragments) {
    EXPECT_NE(checkpoint.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << checkpoint.error().message();
  }
}

struct Meaning {
  const char* name;
  std::size_t row_bytes;  // of 256 weights
  SourceType type;
};
void PrintTo(const Meaning& meaning, std::ostream* out) { *out << meaning.name; }

class Id42 : public testing::TestWithParam<Meaning> {};

// 64 rows decide; a single row would fit two types (72 and 68 bytes both take 96 with padding), and
// so would nothing but the whole file.
TEST_P(Id42, IsWhatItsLargestTensorSays) {
  for (const bool padded_end : {false, true}) {
    for (const bool large_first : {false, true}) {
      auto file = empty_model();
      if (large_first) add_rows(file, "large", 64, GetParam().row_bytes);
      add_rows(file, "small", 1, GetParam().row_bytes);
      file.add("between", gguf::kF32, {3}, gguf::f32_bytes({1, 2, 3}));
      if (!large_first) add_rows(file, "large", 64, GetParam().row_bytes);
      add_rows(file, "last", 3, GetParam().row_bytes);
      auto bytes = file.build();
      if (padded_end) bytes.resize((bytes.size() + 31) / 32 * 32);
      const auto checkpoint = parse(bytes);
      ASSERT_TRUE(checkpoint) << checkpoint.error().message();
      for (const importer::Tensor& tensor : checkpoint->tensors) {
        if (tensor.name == "between") continue;
        EXPECT_EQ(tensor.type, GetParam().type) << tensor.name;
        const auto& built = file.tensor(tensor.name).data;
        EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), built.begin(), built.end()));
      }
    }
  }
}

TEST_P(Id42, OfTwoTypesInAFileIsRefused) {
  auto file = empty_model();
  add_rows(file, "large", 64, GetParam().row_bytes);
  add_rows(file, "other", 32, GetParam().row_bytes == 72 ? 68 : 72);
  add_rows(file, "more", 1, GetParam().row_bytes);
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_FALSE(checkpoint);
  EXPECT_NE(checkpoint.error().message().find("'other': 8192 weights"), std::string::npos)
      << checkpoint.error().message();
}

INSTANTIATE_TEST_SUITE_P(Every, Id42,
                         testing::Values(Meaning{"Q2_0", 72, SourceType::q2_0},
                                         Meaning{"PQ2_0", 68, SourceType::pq2_0},
                                         Meaning{"STQ1_0", 42, SourceType::stq1_0}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SizedTypes, TwoMeaningsAreRefused) {
  auto file = empty_model();
  add_rows(file, "only", 1, 72);
  file.add("behind", gguf::kF32, {1}, gguf::f32_bytes({1}));
  expect_refused(file, ErrorCode::unsupported,
                 {"id 42", "more than one", "'only'", "Q2_0 takes 72, PQ2_0 takes 68"});
}

// Its width can decide where its size does not: 64 is no multiple of 128.
TEST(SizedTypes, WidthsCount) {
  auto file = empty_model();
  file.add("narrow", gguf::kQ2_0, {64, 1}, gguf::some_bytes(18, 1));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::q2_0);
  file = empty_model();
  file.add("odd", gguf::kQ2_0, {100, 4}, gguf::some_bytes(400, 1));
  expect_refused(file, ErrorCode::unsupported, {"'odd'", "100 a row", "Q2_0 has blocks of 64"});
}

TEST(SizedTypes, NoMeaningIsRefused) {
  auto file = empty_model();
  add_rows(file, "strange", 64, 100);
  expect_refused(file, ErrorCode::unsupported,
                 {"'strange': 16384 weights", "6400 bytes", "Q2_0 takes 4608",
                  "PQ2_0 takes 4352, STQ1_0 takes 2688"});
  file = empty_model();
  add_rows(file, "short", 64, 20);
  expect_refused(file, ErrorCode::damaged, {"'short'", "1280 bytes"});
}

TEST(SizedTypes, HugeDimsAreRefused) {
  for (const std::uint32_t id : {gguf::kI2_S, gguf::kQ2_0, gguf::kSTQ1_0}) {
    auto file = empty_model();
    file.add("huge", id, {1ull << 31, 1ull << 32}, gguf::some_bytes(64, 1));
    expect_refused(file, ErrorCode::damaged, {"'huge'", "9223372036854775808 weights"});
    file.tensors[0].dims = {1ull << 32, 1ull << 32};
    expect_refused(file, ErrorCode::damaged, {"'huge'", "wrap"});
    file.tensors[0].dims = {256, 1};
    file.tensors[0].offset = 1ull << 63;
    expect_refused(file, ErrorCode::damaged, {"'huge'", "the data has"});
  }
}

TEST(SizedTypes, Id43IsSherry) {
  auto file = empty_model();
  add_rows(file, "quads", 2, 42, gguf::kSTQ1_0);
  const auto bytes = file.build();
  auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::stq1_0);
  ASSERT_EQ(checkpoint->warnings.size(), 1u);
  EXPECT_NE(checkpoint->warnings[0].find("1 tensors are STQ1_0"), std::string::npos);
  checkpoint = parse(bytes, {.stq_consecutive = true});
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::stq1_0_consecutive);
  EXPECT_TRUE(checkpoint->warnings.empty());
  const auto named = file.set("general.finetune", gguf::text("2bit-stride16")).build();
  checkpoint = parse(named);
  ASSERT_TRUE(checkpoint);
  EXPECT_TRUE(checkpoint->warnings.empty());
}

GgufBuilder i2s_model(float scale) {
  auto file = empty_model();
  auto data = gguf::some_bytes(3 * 64, 3);
  const auto tail = gguf::f32_bytes({scale, 0, 0, 0, 0, 0, 0, 0});
  data.insert(data.end(), tail.begin(), tail.end());
  file.add("codes", gguf::kI2_S, {256, 3}, data);
  file.add("behind", gguf::kF32, {1}, gguf::f32_bytes({1}));
  return file;
}

TEST(SizedTypes, I2sHasOneScale) {
  const auto bytes = i2s_model(0.037109f).build();
  auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::i2_s);
  EXPECT_EQ(checkpoint->tensors[0].scale, 0.037109f);
  EXPECT_EQ(checkpoint->tensors[0].data.size(), 3u * 64);
  EXPECT_EQ(checkpoint->tensors[1].scale, 1);
  checkpoint = parse(bytes, {.i2s_64 = true});
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->tensors[0].type, SourceType::i2_s_64);
  EXPECT_EQ(checkpoint->tensors[0].scale, 0.037109f);
}

TEST(SizedTypes, I2sHasItsSize) {
  auto file = i2s_model(1);
  file.tensor("codes").data.resize(3 * 64);
  expect_refused(file, ErrorCode::damaged, {"'codes'", "192 bytes", "I2_S takes 224"});
  file = i2s_model(1);
  file.tensor("codes").data.resize(3 * 144);  // as 18 bytes for 32 weights
  expect_refused(file, ErrorCode::unsupported, {"'codes'", "448 bytes", "I2_S takes 224"});
  file = i2s_model(1);
  file.tensor("codes").dims = {192, 4};
  expect_refused(file, ErrorCode::unsupported, {"'codes'", "I2_S has blocks of 128"});
}

TEST(SizedTypes, EveryCutIsAnError) {
  auto i2s = i2s_model(1);
  i2s.tensors.pop_back();
  auto q2 = empty_model();
  add_rows(q2, "large", 64, 72);
  add_rows(q2, "last", 1, 72);
  for (const GgufBuilder& file : {i2s, q2}) {
    const auto bytes = file.build();
    ASSERT_TRUE(parse(bytes));
    // The last bytes of a tensor may be missing from the padding alone, never from its blocks.
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::vector<std::byte> cut(bytes.begin(),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(length));
      const auto checkpoint = parse(cut);
      ASSERT_FALSE(checkpoint) << "cut to " << length;
      EXPECT_EQ(checkpoint.error().code(), ErrorCode::damaged) << checkpoint.error().message();
    }
  }
}

}  // namespace
}  // namespace tsq
