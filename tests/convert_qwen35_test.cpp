// The tiny ternary models of qwen35, written by numpy as the files of Ternary-Bonsai 27B are: what
// their tensors mean, after conversion.
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "convert_support.h"
#include "format/probes.h"

namespace tsq {
namespace {

const fs::path kFiles = fs::path(TSQ_TEST_DATA) / "qwen35";

class ConvertQwen35 : public ConvertTest {
 protected:
  format::OpenedFile convert_file(const std::string& file, const ConvertOptions& options = {}) {
    const fs::path sources[] = {kFiles / file}, made = folder_.path() / (file + ".tsq");
    const auto summary = convert::convert(sources, made, options);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message());
    EXPECT_TRUE(summary && summary->warnings.empty());
    return open_sound(made);
  }
};

std::vector<float> decode_row(const format::File& file, const format::TensorRecord& record,
                              std::uint64_t row) {
  std::vector<float> values(record.cols());
  format::decode_row(record.shape(), file.bytes(record), row, values.data());
  return values;
}

// NAME.weights.json: digests of the values, heads grouped, norms and decays as they multiply, and
// some weights from before the rotation.
void expect_meaning(const format::File& file, const std::string& name) {
  std::ifstream text(kFiles / (name + ".weights.json"));
  const auto golden = nlohmann::json::parse(text);
  ASSERT_EQ(file.tensors().size(), golden.at("tensors").size());
  for (const auto& [tensor, about] : golden.at("tensors").items()) {
    const format::TensorRecord* const record = file.find(tensor);
    ASSERT_NE(record, nullptr) << tensor;
    std::vector<float> values;
    for (std::uint64_t row = 0; row < record->rows(); ++row) {
      const auto more = decode_row(file, *record, row);
      values.insert(values.end(), more.begin(), more.end());
    }
    EXPECT_EQ(hex(sha256(std::as_bytes(std::span(values)))), about.at("sha256")) << tensor;
    EXPECT_EQ(record->input_rotation != format::kNoRotation, about.at("rotated")) << tensor;
  }
  for (const auto& weight : golden.at("unrotated")) {
    const format::TensorRecord& record = *file.find(weight[0].get<std::string>());
    const double value = format::unrotated_weight(
        decode_row(file, record, weight[1]), file.rotations()[record.input_rotation], weight[2]);
    EXPECT_NEAR(value, weight[3].get<double>(), 1e-12) << weight;
  }
}

TEST_F(ConvertQwen35, WeightsMeanWhatTheUnrotatedTwinDoes) {
  for (const char* file : {"qwen35_rot128.ptq1_0.gguf", "qwen35_rot128.pq2_0.gguf"}) {
    SCOPED_TRACE(file);
    const auto opened = convert_file(file);
    expect_meaning(opened.file, "qwen35_rot128");
    EXPECT_EQ(opened.file.rotations().size(), 3u);
  }
}

TEST_F(ConvertQwen35, WithoutARotationTheOutputsInputsAreGroupedToo) {
  expect_meaning(convert_file("qwen35_tiled.q2_0.gguf").file, "qwen35_tiled");
}

TEST_F(ConvertQwen35, EncodingsOfWhatIsNoMatrixProduct) {
  for (const auto dense : {convert::DenseEncoding::keep, convert::DenseEncoding::q8}) {
    ConvertOptions options;
    options.dense = dense;
    const auto opened = convert_file("qwen35_rot128.ptq1_0.gguf", options);
    const auto* taps = opened.file.find("blk.0.ssm_conv1d.weight");
    EXPECT_EQ(taps->encoding, Encoding::f32);
    EXPECT_EQ(taps->cols(), 640u);
    EXPECT_EQ(taps->rows(), 4u);
    for (const char* name : {"blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.0.ssm_norm.weight"}) {
      EXPECT_EQ(opened.file.find(name)->encoding, Encoding::f32) << name;
    }
  }
}

// A .tsq has the heads grouped already: made of itself it stays as it is.
TEST_F(ConvertQwen35, ATsqIsNotGroupedAgain) {
  for (const char* file : {"qwen35_rot128.ptq1_0.gguf", "qwen35_tiled.q2_0.gguf"}) {
    const auto first = convert_file(file);
    const fs::path sources[] = {folder_.path() / (std::string(file) + ".tsq")};
    ASSERT_TRUE(convert::convert(sources, target()));
    const auto second = open_sound(target());
    for (const format::TensorRecord& record : first.file.tensors()) {
      EXPECT_EQ(second.file.find(record.name)->digest, record.digest) << record.name;
    }
  }
}

}  // namespace
}  // namespace tsq
