// Conversion loses nothing: codes, scales, values, shapes, rotations.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstring>

#include "base/errorf.h"
#include "convert_support.h"
#include "import/blocks.h"

namespace tsq {
namespace {

// Every stored value of both files is the same.
void expect_lossless(const importer::Checkpoint& source, const format::File& file) {
  ASSERT_EQ(source.tensors.size(), file.tensors().size());
  for (const importer::Tensor& tensor : source.tensors) {
    SCOPED_TRACE(std::string(tensor.name));
    const format::TensorRecord* record = file.find(tensor.name);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->dims, tensor.dims);
    EXPECT_EQ(record->n_dims, tensor.n_dims);
    EXPECT_EQ(record->input_rotation, tensor.rotation);
    std::vector<float> expected(tensor.cols()), actual(tensor.cols());
    for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
      importer::decode_row(tensor, row, expected.data());
      format::decode_row(record->shape(), file.bytes(*record), row, actual.data());
      ASSERT_EQ(actual, expected) << "row " << row;
    }
  }
}

// The codes and the bits of the scales, which values alone do not show (a code with scale 0, a -0).
void expect_same_codes(const importer::Tensor& tensor, const format::File& file) {
  const format::TensorRecord& record = *file.find(tensor.name);
  const std::size_t cols = tensor.cols(), padded = format::padded_cols(record.encoding, cols);
  const std::size_t lines = format::scale_lines(record.shape());
  const std::size_t in_lines = padded / format::kGroup * lines;  // scales of a row
  const std::size_t group = importer::scale_group(tensor);
  const std::uint64_t block_bytes = format::row_block_bytes(record.shape());
  std::vector<std::uint8_t> expected(cols), codes(format::kRowBlock * padded);
  std::vector<std::uint16_t> expected_scales(cols / group), scales(format::kRowBlock * in_lines);
  std::uint64_t zeros = 0;
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    const std::size_t i = row % format::kRowBlock;
    if (i == 0) {
      ASSERT_TRUE(format::unpack_row_block(
          record.shape(), file.body(record).data() + row / format::kRowBlock * block_bytes,
          codes.data(), scales.data()));
    }
    ASSERT_TRUE(importer::decode_ternary_row(tensor, row, expected.data(), expected_scales.data()));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), codes.data() + i * padded));
    for (std::size_t k = 0; k < expected_scales.size() && lines != 0; ++k) {
      ASSERT_EQ(expected_scales[k], scales[i * in_lines + k * group * lines / format::kGroup]);
    }
    if (lines == 0) {
      const bool per_row = record.scale_kind == format::ScaleKind::per_row;
      ASSERT_EQ(importer::row_scale(tensor, row), file.scales(record)[per_row ? row : 0]);
    }
    zeros += static_cast<std::uint64_t>(std::count(expected.begin(), expected.end(), 1));
  }
  EXPECT_EQ(record.zero_count, zeros);
}

void expect_same_codes(const importer::Checkpoint& source, const format::File& file) {
  for (const importer::Tensor& tensor : source.tensors) {
    SCOPED_TRACE(std::string(tensor.name));
    if (importer::is_ternary(tensor.type)) expect_same_codes(tensor, file);
  }
}

// ---- files that other programs made ----

class ConvertedFiles : public ConvertTest, public testing::WithParamInterface<std::string> {};

TEST_P(ConvertedFiles, LoseNothing) {
  const fs::path sources[] = {kModels / GetParam()};
  const auto source = importer::open_gguf(sources);
  ASSERT_TRUE(source) << source.error().message();
  for (const auto encoding : {TernaryEncoding::automatic, TernaryEncoding::t2}) {
    ConvertOptions options;
    options.encoding = encoding;
    const auto summary = convert::convert(sources, target(), options);
    ASSERT_TRUE(summary) << summary.error().message();
    EXPECT_EQ(summary->file_bytes, fs::file_size(target()));
    EXPECT_TRUE(summary->has_tokenizer) << summary->no_tokenizer;
    // One file has a layer of multi-token prediction, which is left out.
    EXPECT_EQ(summary->warnings.empty(), GetParam() != "qwen35_four.gguf");
    const auto opened = open_sound(target());
    expect_lossless(source->checkpoint, opened.file);
    expect_same_codes(source->checkpoint, opened.file);
    ASSERT_EQ(opened.file.rotations().size(), source->checkpoint.rotations.size());
  }
}

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Every, ConvertedFiles, testing::ValuesIn(model_files()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// The same weights in two foreign encodings: the same file but for its metadata.
class SameWeights : public ConvertTest,
                    public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(SameWeights, GiveTheSameBits) {
  const auto& [first, second] = GetParam();
  const fs::path first_source[] = {kModels / first}, second_source[] = {kModels / second};
  const fs::path first_target = folder_.path() / "1.tsq", second_target = folder_.path() / "2.tsq";
  for (const auto encoding : {TernaryEncoding::t1, TernaryEncoding::t2}) {
    ConvertOptions options;
    options.encoding = encoding;
    ASSERT_TRUE(convert::convert(first_source, first_target, options));
    ASSERT_TRUE(convert::convert(second_source, second_target, options));
    const auto a = open_sound(first_target), b = open_sound(second_target);
    std::size_t ternary = 0;
    ASSERT_EQ(a.file.tensors().size(), b.file.tensors().size());
    for (const format::TensorRecord& record : a.file.tensors()) {
      const format::TensorRecord* other = b.file.find(record.name);
      ASSERT_NE(other, nullptr) << record.name;
      EXPECT_EQ(record.encoding, other->encoding) << record.name;
      EXPECT_EQ(record.digest, other->digest) << record.name;
      const auto x = a.file.body(record), y = b.file.body(*other);
      EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << record.name;
      ternary += format::is_ternary(record.encoding) ? 1 : 0;
    }
    EXPECT_GE(ternary, 8u);
    ASSERT_EQ(a.file.rotations().size(), b.file.rotations().size());
    for (std::size_t i = 0; i < a.file.rotations().size(); ++i) {
      EXPECT_EQ(a.file.rotations()[i].block, b.file.rotations()[i].block);
      EXPECT_EQ(a.file.rotations()[i].signs, b.file.rotations()[i].signs);
    }
    ASSERT_EQ(a.file.rotation_probes().size(), b.file.rotation_probes().size());
    for (std::size_t i = 0; i < a.file.rotation_probes().size(); ++i) {
      EXPECT_EQ(a.file.rotation_probes()[i].value, b.file.rotation_probes()[i].value);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, SameWeights,
    testing::Values(std::pair{"qwen3_rot64.ptq1_0.gguf", "qwen3_rot64.pq2_0.gguf"},
                    std::pair{"llama_rot128.ptq1_0.gguf", "llama_rot128.pq2_0.gguf"},
                    std::pair{"qwen3_rot128_wide.ptq1_0.gguf", "qwen3_rot128_wide.pq2_0.gguf"},
                    std::pair{"qwen3_rot1024.ptq1_0.gguf", "qwen3_rot1024.pq2_0.gguf"},
                    std::pair{"llama_tq.tq1_0.gguf", "llama_tq.tq2_0.gguf"},
                    std::pair{"../qwen35/qwen35_rot128.ptq1_0.gguf",
                              "../qwen35/qwen35_rot128.pq2_0.gguf"}));

// The probes are the weights before rotation: numpy's un-rotated twin has them as they are.
TEST_F(ConvertTest, RotationProbesAreTheUnrotatedWeights) {
  const fs::path source[] = {kModels / "qwen3_rot64.ptq1_0.gguf"};
  const fs::path twin_source[] = {kModels / "qwen3_rot64.twin_f32.gguf"};
  ASSERT_TRUE(convert::convert(source, target()));
  const auto twin = importer::open_gguf(twin_source);
  ASSERT_TRUE(twin);
  const auto opened = open_sound(target());
  const auto probes = opened.file.rotation_probes();
  ASSERT_GE(probes.size(), 16u);
  std::vector<std::size_t> of_rotation(opened.file.rotations().size());
  std::size_t other_than_zero = 0;
  for (const format::RotationProbe& probe : probes) {
    const auto& record = opened.file.tensors()[probe.tensor];
    const auto tensor =
        std::find_if(twin->checkpoint.tensors.begin(), twin->checkpoint.tensors.end(),
                     [&](const importer::Tensor& t) { return t.name == record.name; });
    ASSERT_NE(tensor, twin->checkpoint.tensors.end());
    float expected = 0;
    std::memcpy(&expected, tensor->data.data() + 4 * (probe.row * tensor->cols() + probe.col), 4);
    EXPECT_NEAR(probe.value, static_cast<double>(expected), 1e-12) << record.name;
    ++of_rotation[probe.rotation];
    other_than_zero += expected != 0 ? 1 : 0;
  }
  for (const std::size_t n : of_rotation) EXPECT_GE(n, 4u);
  EXPECT_GE(other_than_zero, probes.size() / 2);
}

// A reader with the signs behind H, or without a rotation, would not find the probes' values.
TEST_F(ConvertTest, RotationProbesSeeAWrongOrder) {
  const fs::path source[] = {kModels / "qwen3_rot64.ptq1_0.gguf"};
  ASSERT_TRUE(convert::convert(source, target()));
  const auto opened = open_sound(target());
  std::size_t wrong_order = 0, no_rotation = 0, all = 0;
  for (const format::RotationProbe& probe : opened.file.rotation_probes()) {
    const auto& record = opened.file.tensors()[probe.tensor];
    const auto& rotation = opened.file.rotations()[probe.rotation];
    ASSERT_FALSE(rotation.signs.empty());
    std::vector<float> stored(record.cols());
    format::decode_row(record.shape(), opened.file.bytes(record), probe.row, stored.data());
    const std::uint64_t first = probe.col / rotation.block * rotation.block;
    double sum = 0, magnitude = 0;
    for (std::uint64_t j = first; j < first + rotation.block; ++j) {
      const bool minus = (rotation.signs[j / 32] >> (j % 32) & 1) != 0;
      const bool odd = (std::popcount((j - first) & (probe.col - first)) & 1) != 0;
      sum += (minus != odd ? -1 : 1) * static_cast<double>(stored[j]);
      magnitude += std::abs(static_cast<double>(stored[j]));
    }
    const double scale = 1 / std::sqrt(static_cast<double>(rotation.block));
    const double tolerance = 0x1p-30 * magnitude * scale;
    wrong_order += std::abs(sum * scale - probe.value) > tolerance ? 1 : 0;
    no_rotation +=
        std::abs(static_cast<double>(stored[probe.col]) - probe.value) > tolerance ? 1 : 0;
    ++all;
  }
  EXPECT_GE(wrong_order, all * 3 / 4);
  EXPECT_GE(no_rotation, all * 3 / 4);
}

// ---- shapes ----

TEST_F(ConvertTest, TernaryShapesOfEveryRest) {
  for (const auto encoding : {TernaryEncoding::automatic, TernaryEncoding::t2}) {
    auto file = small_model();
    std::uint32_t seed = 10;
    for (const std::uint64_t groups : {1u, 2u, 3u, 4u, 5u, 6u, 9u, 11u}) {
      for (const std::uint64_t rows : {1u, 31u, 32u, 33u, 65u}) {
        file.add(stringf("g%" PRIu64 "r%" PRIu64, groups, rows), gguf::kPQ2_0, {128 * groups, rows},
                 pq2_rows(groups * rows, ++seed));
      }
    }
    file.add("stacked", gguf::kPQ2_0, {128, 3, 7, 2}, pq2_rows(42, 99));
    ConvertOptions options;
    options.encoding = encoding;
    const auto bytes = file.build();
    const auto source = parse(bytes);
    ASSERT_TRUE(source) << source.error().message();
    const auto opened = make(file, options);
    expect_lossless(*source, opened.file);
    expect_same_codes(*source, opened.file);
    EXPECT_EQ(opened.file.find("g1r1")->encoding,
              encoding == TernaryEncoding::t2 ? Encoding::t2 : Encoding::t1);
    EXPECT_EQ(opened.file.find("stacked")->rows(), 42u);
  }
}

TEST_F(ConvertTest, DenseTypesStayWhatTheyAre) {
  auto file = small_model();
  file.add("f32", gguf::kF32, {33, 3}, gguf::some_bytes(4 * 99, 3));
  file.add("f16", gguf::kF16, {31, 4}, gguf::some_bytes(2 * 124, 4));
  file.add("bf16", gguf::kBF16, {1, 5}, gguf::some_bytes(10, 5));
  file.add("q8_0", gguf::kQ8_0, {96, 2}, gguf::some_bytes(6 * 34, 6));
  file.add("q4_0", gguf::kQ4_0, {64, 3}, gguf::some_bytes(6 * 18, 7));
  file.add("q4_1", gguf::kQ4_1, {32, 2, 2}, gguf::some_bytes(4 * 20, 8));
  file.add("vector_f16", gguf::kF16, {3}, gguf::some_bytes(6, 9));
  file.add("vector_bf16", gguf::kBF16, {33}, gguf::some_bytes(66, 10));
  const auto bytes = file.build();
  const auto source = parse(bytes);
  ASSERT_TRUE(source) << source.error().message();
  const auto opened = make(file);
  expect_lossless(*source, opened.file);
  const std::pair<const char*, Encoding> kExpected[] = {
      {"f32", Encoding::f32},        {"f16", Encoding::f16},        {"bf16", Encoding::bf16},
      {"q8_0", Encoding::q8},        {"q4_0", Encoding::q4},        {"q4_1", Encoding::q4},
      {"vector_f16", Encoding::f32}, {"vector_bf16", Encoding::f32}};
  for (const auto& [name, encoding] : kExpected) {
    EXPECT_EQ(opened.file.find(name)->encoding, encoding) << name;
  }
  EXPECT_EQ(opened.file.find("q4_0")->flags, 0u);
  EXPECT_EQ(opened.file.find("q4_1")->flags, format::kFlagMinimum);
  // Quantised blocks are copied, not made anew.
  EXPECT_EQ(std::memcmp(opened.file.body(*opened.file.find("q8_0")).data(),
                        file.tensor("q8_0").data.data(), 6 * 34),
            0);
}
}  // namespace
}  // namespace tsq
