// Conversion: nothing lost, nothing left behind.
#include "convert/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/errorf.h"
#include "format/reader.h"
#include "format/verify.h"
#include "gguf_builder.h"
#include "import/blocks.h"
#include "import/gguf.h"
#include "temporary_folder.h"

namespace tsq {
namespace {

namespace fs = std::filesystem;
using convert::ConvertOptions;
using convert::TernaryEncoding;
using format::Encoding;
using gguf::GgufBuilder;

const fs::path kModels = fs::path(TSQ_TEST_DATA) / "models";

Result<importer::Checkpoint> parse(const std::vector<std::byte>& file) {
  const importer::Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// PQ2_0 rows with codes 0, 1, 2 and scales of both signs.
std::vector<std::byte> pq2_rows(std::size_t blocks, std::uint32_t seed) {
  ByteWriter out;
  std::uint32_t state = seed;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (std::size_t b = 0; b < blocks; ++b) {
    out.write(static_cast<std::uint16_t>(0x2000u + next() % 0x1800u + (b % 3 == 0 ? 0x8000u : 0)));
    for (int i = 0; i < 32; ++i) {
      unsigned byte = 0;
      for (int k = 0; k < 4; ++k) byte |= next() % 3 << (2 * k);
      out.write(static_cast<std::uint8_t>(byte));
    }
  }
  return out.take();
}

// A model in memory: one ternary matrix, and what a .tsq file asks of its metadata.
GgufBuilder small_model() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("llama"));
  file.set("general.name", gguf::text("A small model"));
  file.set("llama.embedding_length", gguf::u32(128));
  file.set("llama.block_count", gguf::u32(1));
  file.add("token_embd.weight", gguf::kQ8_0, {128, 3}, gguf::some_bytes(3 * 4 * 34, 1));
  file.add("blk.0.attn_norm.weight", gguf::kF32, {5}, gguf::f32_bytes({1, -2, 3, 0.25f, 5}));
  file.add("blk.0.attn_q.weight", gguf::kPQ2_0, {128, 40}, pq2_rows(40, 2));
  return file;
}

GgufBuilder with_tokenizer() {
  auto file = small_model();
  file.set("tokenizer.ggml.model", gguf::text("gpt2"));
  file.set("tokenizer.ggml.pre", gguf::text("qwen2"));
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab"}));
  file.set("tokenizer.ggml.token_type", gguf::i32s({1, 1, 1}));
  file.set("tokenizer.ggml.scores", gguf::array(ValueType::f32, std::vector<float>{0, 0, 0}));
  file.set("tokenizer.ggml.merges", gguf::texts({"a b", "b b"}));
  file.set("tokenizer.chat_template", gguf::text("{{ x }}"));
  return file;
}

// A folder for one conversion, its target and the file it made.
class ConvertTest : public testing::Test {
 protected:
  Result<convert::Summary> convert_built(const GgufBuilder& file,
                                         const ConvertOptions& options = {}) {
    const auto bytes = file.build();
    auto checkpoint = parse(bytes);
    if (!checkpoint) return checkpoint.error();
    return convert::convert_checkpoint(*checkpoint, target(), options);
  }
  fs::path target() const { return folder_.path() / "out.tsq"; }

  // Converts, opens and verifies.
  format::OpenedFile make(const GgufBuilder& file, const ConvertOptions& options = {}) {
    const auto summary = convert_built(file, options);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message());
    return open_sound(target());
  }
  static format::OpenedFile open_sound(const fs::path& path) {
    auto opened = format::open(path);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    const auto report = format::verify(opened->file);
    EXPECT_TRUE(report);
    for (const auto& finding : report->findings) {
      ADD_FAILURE() << finding.where << ": " << finding.found << ", expected " << finding.expected;
    }
    return std::move(*opened);
  }
  void expect_refused(const GgufBuilder& file, ErrorCode code,
                      const std::vector<std::string>& fragments,
                      const ConvertOptions& options = {}) {
    const auto summary = convert_built(file, options);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().code(), code) << summary.error().message();
    for (const std::string& fragment : fragments) {
      EXPECT_NE(summary.error().message().find(fragment), std::string::npos)
          << "no '" << fragment << "' in: " << summary.error().message();
    }
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  }

  TemporaryFolder folder_;
};

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
    const std::uint64_t bytes = importer::row_bytes(tensor.type, tensor.cols());
    for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
      importer::decode_row(tensor.type, tensor.data.subspan(row * bytes, bytes), expected.data());
      format::decode_row(record->shape(), file.body(*record), row, actual.data());
      ASSERT_EQ(actual, expected) << "row " << row;
    }
  }
}

// The codes and the bits of the scales, which values alone do not show (a code with scale 0, a -0).
void expect_same_codes(const importer::Tensor& tensor, const format::File& file) {
  const format::TensorRecord& record = *file.find(tensor.name);
  const std::size_t cols = tensor.cols(), groups = cols / format::kGroup;
  const std::uint64_t block_bytes = format::row_block_bytes(record.encoding, cols);
  const std::uint64_t bytes = importer::row_bytes(tensor.type, cols);
  std::vector<std::uint8_t> expected(cols), codes(format::kRowBlock * cols);
  std::vector<std::uint16_t> expected_scales(groups), scales(format::kRowBlock * groups);
  std::uint64_t zeros = 0;
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    const std::size_t i = row % format::kRowBlock;
    if (i == 0) {
      ASSERT_TRUE(format::unpack_row_block(
          record.encoding, cols, file.body(record).data() + row / format::kRowBlock * block_bytes,
          codes.data(), scales.data()));
    }
    ASSERT_TRUE(importer::decode_ternary_row(tensor.type, tensor.data.subspan(row * bytes, bytes),
                                             expected.data(), expected_scales.data()));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), codes.data() + i * cols));
    ASSERT_TRUE(
        std::equal(expected_scales.begin(), expected_scales.end(), scales.data() + i * groups));
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
  for (const auto encoding : {TernaryEncoding::t1, TernaryEncoding::t2}) {
    ConvertOptions options;
    options.encoding = encoding;
    const auto summary = convert::convert(sources, target(), options);
    ASSERT_TRUE(summary) << summary.error().message();
    EXPECT_EQ(summary->file_bytes, fs::file_size(target()));
    EXPECT_TRUE(summary->has_tokenizer) << summary->no_tokenizer;
    EXPECT_TRUE(summary->warnings.empty());
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
                    std::pair{"llama_tq.tq1_0.gguf", "llama_tq.tq2_0.gguf"}));

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
    format::decode_row(record.shape(), opened.file.body(record), probe.row, stored.data());
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

TEST_F(ConvertTest, ThreadsChangeNothing) {
  auto file = small_model();
  file.add("blk.0.ffn_up.weight", gguf::kPQ2_0, {640, 500}, pq2_rows(2500, 5));
  ConvertOptions options;
  ASSERT_TRUE(convert_built(file, options));
  const std::string serial = read_file(target());
  for (const int threads : {2, 3}) {
    options.threads = threads;
    ASSERT_TRUE(convert_built(file, options));
    EXPECT_EQ(read_file(target()), serial) << threads;
  }
}

// ---- header, metadata, summary ----

TEST_F(ConvertTest, KeepsMetadataButWhatOtherSectionsHold) {
  auto file = with_tokenizer();
  file.set("split.count", gguf::u16(1));
  file.set("some.list", gguf::array(ValueType::f64, std::vector<double>{1, 2}));
  const auto opened = make(file);
  const Metadata& metadata = opened.file.metadata();
  for (const auto& [key, value] : file.keys) {
    const Value* kept = metadata.find(key);
    const bool left_out = key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.scores" ||
                          key == "tokenizer.ggml.token_type" || key == "tokenizer.ggml.merges" ||
                          key == "split.count";
    ASSERT_EQ(kept == nullptr, left_out) << key;
    if (left_out) continue;
    ByteWriter again;
    again.write(static_cast<std::uint32_t>(kept->type()));
    again.write_bytes(kept->bytes());
    EXPECT_EQ(again.take(), value) << key;
  }
  EXPECT_EQ(opened.file.header().hidden_size, 128u);
  EXPECT_EQ(opened.file.header().num_layers, 1u);
  EXPECT_EQ(opened.file.header().vocab_size, 3u);
  EXPECT_EQ(opened.file.header().model_name, "A small model");
  EXPECT_EQ(opened.file.header().quant_type, format::QuantType::ternary);
  const auto view = format::TokenizerView::parse(opened.file.tokenizer_section(), 3);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(view->token(2), "ab");
  ASSERT_TRUE(view->merge(0, 1));
  EXPECT_EQ(view->merge(0, 1)->result, 2u);
}

TEST_F(ConvertTest, RotatedKeysBecomeTheRotationSection) {
  const fs::path source[] = {kModels / "llama_rot128.ptq1_0.gguf"};
  const auto summary = convert::convert(source, target());
  ASSERT_TRUE(summary);
  const auto opened = open_sound(target());
  for (const Entry& entry : opened.file.metadata().entries()) {
    EXPECT_FALSE(entry.key.starts_with("prism")) << entry.key;
  }
  EXPECT_EQ(opened.file.header().quant_type, format::QuantType::ternary_hadamard);
  EXPECT_EQ(opened.file.header().hadamard_order, 7u);
  EXPECT_EQ(summary->rotations.size(), opened.file.rotations().size());
  EXPECT_EQ(summary->rotated_tensors,
            static_cast<std::size_t>(std::count_if(
                opened.file.tensors().begin(), opened.file.tensors().end(),
                [](const auto& record) { return record.input_rotation != format::kNoRotation; })));
}

TEST_F(ConvertTest, NamesAreCutAtACharacter) {
  auto file = small_model();
  file.set("general.name", gguf::text("thirty-one bytes of plain text.\xc3\xa9"));
  EXPECT_EQ(make(file).file.header().model_name, "thirty-one bytes of plain text.");
  file.set("general.name", gguf::text("tab\there \xff!"));
  EXPECT_EQ(make(file).file.header().model_name, "tabhere !");
  file.erase("general.name");
  EXPECT_EQ(make(file).file.header().model_name, "");
}

TEST_F(ConvertTest, SummaryCountsWhatWasWritten) {
  auto file = with_tokenizer();
  file.add("blk.0.ffn_up.weight", gguf::kPQ2_0, {640, 32}, pq2_rows(160, 5));
  const auto t1 = convert_built(file);
  ASSERT_TRUE(t1) << t1.error().message();
  // 40 rows of 1 group are 2 row blocks of 1088 bytes; 32 rows of 5 groups one of 4416.
  EXPECT_EQ(t1->ternary_weights, 128u * 40 + 640 * 32);
  EXPECT_EQ(t1->ternary_bytes, 2u * 1088 + 4416);
  EXPECT_EQ(t1->ternary_bytes_as_t1, t1->ternary_bytes);
  EXPECT_EQ(t1->ternary_bytes_as_t2, 2u * 1088 + 5 * 1088);
  EXPECT_EQ(t1->bits_per_ternary_weight(), 8.0 * (2 * 1088 + 4416) / (128 * 40 + 640 * 32));
  EXPECT_EQ(t1->weights, t1->ternary_weights + 5 + 3 * 128);
  EXPECT_EQ(t1->weight_bytes, t1->ternary_bytes + 32 * 4 + 3 * 4 * 34);
  EXPECT_NEAR(t1->zero_rate(), 1.0 / 3, 0.02);
  ASSERT_EQ(t1->encodings.size(), 3u);
  EXPECT_EQ(t1->encodings[0].encoding, Encoding::f32);
  EXPECT_EQ(t1->encodings[1].encoding, Encoding::q8);
  EXPECT_EQ(t1->encodings[2].encoding, Encoding::t1);
  EXPECT_EQ(t1->encodings[2].tensors, 2u);
  EXPECT_EQ(t1->encodings[2].bytes, t1->ternary_bytes);
  EXPECT_EQ(t1->dropped_merges, 1u);
  EXPECT_TRUE(t1->has_tokenizer);
  EXPECT_EQ(t1->token_probe.state, format::TokenProbeState::not_asked);
  EXPECT_EQ(t1->file_bytes, fs::file_size(target()));

  ConvertOptions options;
  options.encoding = TernaryEncoding::t2;
  const auto t2 = convert_built(file, options);
  ASSERT_TRUE(t2);
  EXPECT_EQ(t2->ternary_bytes, t1->ternary_bytes_as_t2);
  EXPECT_EQ(t2->ternary_zeros, t1->ternary_zeros);
}

TEST_F(ConvertTest, ProgressEndsAtTheWhole) {
  std::uint64_t last = 0, total = 0, calls = 0;
  ConvertOptions options;
  options.progress = [&](const convert::Progress& progress) {
    EXPECT_GE(progress.bytes_done, last);
    last = progress.bytes_done;
    total = progress.bytes_total;
    ++calls;
    return true;
  };
  const auto file = small_model();
  ASSERT_TRUE(convert_built(file, options));
  std::uint64_t bytes = 0;
  for (const auto& tensor : file.tensors) bytes += tensor.data.size();
  EXPECT_EQ(last, bytes);
  EXPECT_EQ(total, bytes);
  EXPECT_GE(calls, 6u);
}

// ---- the token probe ----

format::TokenProbe probe_of(double mean_nll) {
  format::TokenProbe probe;
  probe.state = format::TokenProbeState::present;
  probe.tokens = {0, 1, 2};
  probe.mean_nll = mean_nll;
  probe.greedy = {2, 2};
  return probe;
}

TEST_F(ConvertTest, TokenProbeSeesAWholeFileAndIsKept) {
  ConvertOptions options;
  options.token_probe = [](const fs::path& temporary) -> Result<format::TokenProbe> {
    const auto opened = format::open(temporary);
    EXPECT_TRUE(opened);
    EXPECT_EQ(opened->file.token_probe().state, format::TokenProbeState::empty);
    return probe_of(0.5);
  };
  const auto opened = make(with_tokenizer(), options);
  EXPECT_EQ(opened.file.token_probe().state, format::TokenProbeState::present);
  EXPECT_EQ(opened.file.token_probe().tokens, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(opened.file.token_probe().mean_nll, 0.5);
  EXPECT_EQ(opened.file.token_probe().greedy, (std::vector<std::uint32_t>{2, 2}));
}

TEST_F(ConvertTest, TokenProbeNeedsATokenizer) {
  ConvertOptions options;
  options.token_probe = [](const fs::path&) -> Result<format::TokenProbe> {
    ADD_FAILURE() << "called without a tokenizer";
    return probe_of(0.5);
  };
  EXPECT_EQ(make(small_model(), options).file.token_probe().state,
            format::TokenProbeState::no_tokenizer);
}

TEST_F(ConvertTest, ChanceIsRefusedUnlessAllowed) {
  const double chance = std::log(3.0);
  ConvertOptions options;
  double nll = 0.91 * chance;
  options.token_probe = [&](const fs::path&) -> Result<format::TokenProbe> {
    return probe_of(nll);
  };
  expect_refused(with_tokenizer(), ErrorCode::damaged, {"no better than chance", "0.9 ln 3"},
                 options);
  nll = 0.89 * chance;
  EXPECT_TRUE(convert_built(with_tokenizer(), options));
  nll = 2 * chance;
  options.allow_random = true;
  EXPECT_TRUE(convert_built(with_tokenizer(), options));
}

TEST_F(ConvertTest, AFailingProbeLeavesNothing) {
  ConvertOptions options;
  options.token_probe = [](const fs::path&) -> Result<format::TokenProbe> {
    return Error(ErrorCode::numeric, "layer 0 is not finite");
  };
  expect_refused(with_tokenizer(), ErrorCode::numeric, {"layer 0 is not finite"}, options);
}

// ---- refusals ----

TEST_F(ConvertTest, CancelledAnywhereLeavesNothing) {
  int calls = 0;
  ConvertOptions options;
  options.progress = [&](const convert::Progress&) { return ++calls > 0; };
  ASSERT_TRUE(convert_built(small_model(), options));
  fs::remove(target());
  const int all = calls;
  for (int stop = 1; stop <= all; ++stop) {
    int left = stop;
    options.progress = [&](const convert::Progress&) { return --left > 0; };
    expect_refused(small_model(), ErrorCode::cancelled, {"cancelled"}, options);
  }
}

TEST_F(ConvertTest, AnOldFileSurvivesAFailure) {
  std::ofstream(target()) << "precious";
  auto file = small_model();
  file.tensor("blk.0.attn_q.weight").data[34 * 39 + 2] = std::byte{0xff};
  EXPECT_FALSE(convert_built(file));
  EXPECT_EQ(read_file(target()), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(ConvertTest, Code3IsNotTernary) {
  auto file = small_model();
  file.tensor("blk.0.attn_q.weight").data[34 * 39 + 2] = std::byte{0x0c};
  expect_refused(file, ErrorCode::unsupported,
                 {"'blk.0.attn_q.weight'", "row 39", "code 3", "not ternary"});
}

TEST_F(ConvertTest, InfiniteValuesAreRefused) {
  auto scale = small_model();
  scale.tensor("blk.0.attn_q.weight").data[34 * 33 + 1] = std::byte{0x7c};
  expect_refused(scale, ErrorCode::damaged, {"'blk.0.attn_q.weight'", "row 33", "infinite"});
  auto dense = small_model();
  dense.tensor("blk.0.attn_norm.weight").data = gguf::f32_bytes({1, 2, NAN, 4, 5});
  expect_refused(dense, ErrorCode::damaged, {"'blk.0.attn_norm.weight'", "row 0"});
  auto embedding = small_model();
  embedding.tensor("token_embd.weight").data[34 * 11 + 1] = std::byte{0xfc};
  expect_refused(embedding, ErrorCode::damaged, {"'token_embd.weight'", "row 2"});
}

TEST_F(ConvertTest, MissingKeysAndTensorsAreNamed) {
  auto file = small_model();
  expect_refused(file.erase("general.architecture"), ErrorCode::damaged,
                 {"'general.architecture' is missing"});
  file = small_model();
  expect_refused(file.erase("llama.embedding_length"), ErrorCode::damaged,
                 {"'llama.embedding_length' is missing"});
  file = small_model();
  expect_refused(file.set("llama.block_count", gguf::u32(0)), ErrorCode::damaged,
                 {"'llama.block_count' is 0"});
  file = small_model();
  file.tensor("token_embd.weight").name = "embedding";
  expect_refused(file, ErrorCode::damaged, {"'token_embd.weight' is missing"});
  file = with_tokenizer();
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab", "c"}));
  file.erase("tokenizer.ggml.token_type");
  expect_refused(file, ErrorCode::damaged, {"'token_embd.weight' has 3 rows", "4 tokens"});
}

TEST_F(ConvertTest, TokensOfTheSameBytesAreRefused) {
  auto file = with_tokenizer();
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "b"}));
  expect_refused(file, ErrorCode::unsupported, {"token 2 'b'", "token 1 has them too"});
}

TEST_F(ConvertTest, GatedDeltaNetIsNotThereYet) {
  for (const char* architecture : {"qwen35", "qwen35moe", "qwen3next"}) {
    auto file = small_model();
    file.set("general.architecture", gguf::text(architecture));
    expect_refused(file, ErrorCode::unsupported, {architecture, "not supported yet"});
  }
}

TEST_F(ConvertTest, TheSourceIsNoTarget) {
  const fs::path source = folder_.path() / "model.gguf";
  fs::copy_file(kModels / "qwen3_q4.gguf", source);
  fs::create_symlink(source, folder_.path() / "link.gguf");
  const std::string before = read_file(source);
  const fs::path sources[] = {source};
  for (const fs::path& same :
       {source, folder_.path() / "." / "model.gguf", folder_.path() / "link.gguf"}) {
    const auto summary = convert::convert(sources, same);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(summary.error().message().find("the source itself"), std::string::npos);
  }
  EXPECT_EQ(read_file(source), before);
}

TEST_F(ConvertTest, TheTargetNeedsAFolder) {
  const fs::path sources[] = {kModels / "qwen3_q4.gguf"};
  const fs::path nowhere = folder_.path() / "no" / "out.tsq";
  const auto summary = convert::convert(sources, nowhere);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message().find("out.tsq"), std::string::npos)
      << summary.error().message();
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace tsq
