// Gated DeltaNet of a GGUF: value heads by their key head, whatever the tensor's type.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gguf_builder.h"
#include "import/blocks.h"
#include "import/gguf.h"

namespace tsq {
namespace {

using gguf::GgufBuilder;
using importer::Checkpoint;
using importer::Tensor;

constexpr std::size_t kKeyHeads = 2, kValueHeads = 6, kKeyDim = 16, kValueDim = 128, kHidden = 32;
constexpr std::size_t kInner = kValueHeads * kValueDim, kQAndK = 2 * kKeyHeads * kKeyDim;
constexpr std::size_t kChannels = kQAndK + kInner;

// llama.cpp's converter takes the grouped heads as [key head, r] and transposes.
std::size_t tiled(std::size_t head) {
  constexpr std::size_t kEach = kValueHeads / kKeyHeads;
  return head % kEach * kKeyHeads + head / kEach;
}
// Where a converter puts value i of a run of heads of `size`.
std::size_t place(std::size_t i, std::size_t size) { return tiled(i / size) * size + i % size; }

std::vector<float> counted(std::size_t n, std::size_t cols) {
  std::vector<float> values(n * cols);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i / cols) + static_cast<float>(i % cols) / 1024;
  }
  return values;
}

// Rows of counted(), those from `first` on tiled in heads of `size`.
std::vector<std::byte> tiled_rows(std::size_t n, std::size_t cols, std::size_t first,
                                  std::size_t size) {
  const auto natural = counted(n, cols);
  std::vector<float> stored(natural.size());
  for (std::size_t row = 0; row < n; ++row) {
    const std::size_t to = row < first ? row : first + place(row - first, size);
    std::copy_n(natural.begin() + static_cast<std::ptrdiff_t>(row * cols), cols,
                stored.begin() + static_cast<std::ptrdiff_t>(to * cols));
  }
  return gguf::f32_bytes(stored);
}

GgufBuilder model() {
  GgufBuilder file;
  file.set("general.architecture", gguf::text("qwen35"));
  file.set("qwen35.block_count", gguf::u32(2));
  file.set("qwen35.ssm.group_count", gguf::u32(kKeyHeads));
  file.set("qwen35.ssm.time_step_rank", gguf::u32(kValueHeads));
  file.set("qwen35.ssm.state_size", gguf::u32(kKeyDim));
  file.set("qwen35.ssm.inner_size", gguf::u32(kInner));
  file.set("qwen35.ssm.conv_kernel", gguf::u32(4));
  const auto rows = [&](const char* name, std::size_t n, std::size_t cols, std::size_t first,
                        std::size_t size) {
    file.add(std::string("blk.0.") + name, gguf::kF32, {cols, n}, tiled_rows(n, cols, first, size));
  };
  rows("attn_qkv.weight", kChannels, kHidden, kQAndK, kValueDim);
  rows("attn_gate.weight", kInner, kHidden, 0, kValueDim);
  rows("ssm_alpha.weight", kValueHeads, kHidden, 0, 1);
  rows("ssm_beta.weight", kValueHeads, kHidden, 0, 1);
  rows("ssm_conv1d.weight", kChannels, 4, kQAndK, kValueDim);
  file.add("blk.0.ssm_a", gguf::kF32, {kValueHeads}, tiled_rows(kValueHeads, 1, 0, 1));
  file.add("blk.0.ssm_dt.bias", gguf::kF32, {kValueHeads}, tiled_rows(kValueHeads, 1, 0, 1));
  file.add("blk.0.ssm_norm.weight", gguf::kF32, {kValueDim},
           gguf::f32_bytes(counted(kValueDim, 1)));
  file.add("blk.0.ssm_out.weight", gguf::kF32, {kInner, 2}, gguf::f32_bytes(counted(2, kInner)));
  return file;
}

Result<Checkpoint> parse(const std::vector<std::byte>& file) {
  const importer::Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

std::vector<float> values(const Checkpoint& checkpoint, std::string_view name) {
  const auto tensor = std::ranges::find(checkpoint.tensors, name, &Tensor::name);
  EXPECT_NE(tensor, checkpoint.tensors.end()) << name;
  if (tensor == checkpoint.tensors.end()) return {};
  const auto cols = static_cast<std::size_t>(tensor->cols());
  std::vector<float> all(cols * static_cast<std::size_t>(tensor->rows()));
  for (std::uint64_t row = 0; row < tensor->rows(); ++row) {
    importer::decode_row(*tensor, row, all.data() + row * cols);
  }
  return all;
}

TEST(ValueHeads, RowsAreGrouped) {
  const auto bytes = model().build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(values(*checkpoint, "blk.0.attn_qkv.weight"), counted(kChannels, kHidden));
  EXPECT_EQ(values(*checkpoint, "blk.0.attn_gate.weight"), counted(kInner, kHidden));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_alpha.weight"), counted(kValueHeads, kHidden));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_beta.weight"), counted(kValueHeads, kHidden));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_a"), counted(kValueHeads, 1));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_dt.bias"), counted(kValueHeads, 1));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_norm.weight"), counted(kValueDim, 1));
}

TEST(ValueHeads, TheConvolutionIsTurned) {
  const auto bytes = model().build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  const auto turned = values(*checkpoint, "blk.0.ssm_conv1d.weight");
  const auto natural = counted(kChannels, 4);
  for (std::size_t tap = 0; tap < 4; ++tap) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      ASSERT_EQ(turned[tap * kChannels + channel], natural[channel * 4 + tap]) << tap << channel;
    }
  }
}

struct NamedType {
  const char* name;
  std::uint32_t type;
  std::size_t weights, bytes;  // of a block
  std::size_t behind = 0;      // bytes behind all blocks
};

class ValueHeadColumns : public testing::TestWithParam<NamedType> {};

// The same bytes, as they lie in a model of another architecture, and grouped.
TEST_P(ValueHeadColumns, AreGrouped) {
  const NamedType& kind = GetParam();
  auto file = model();
  auto& out = file.tensor("blk.0.ssm_out.weight");
  out.type = kind.type;
  out.data = gguf::some_bytes(2 * kInner / kind.weights * kind.bytes + kind.behind, 7);
  const auto bytes = file.build();
  file.set("general.architecture", gguf::text("none"));
  const auto other = file.build();
  const auto grouped = parse(bytes), as_it_lies = parse(other);
  ASSERT_TRUE(grouped) << grouped.error().message();
  ASSERT_TRUE(as_it_lies);
  const auto actual = values(*grouped, "blk.0.ssm_out.weight");
  const auto stored = values(*as_it_lies, "blk.0.ssm_out.weight");
  ASSERT_NE(actual, stored);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::size_t row = i / kInner * kInner;
    ASSERT_EQ(actual[i], stored[row + place(i - row, kValueDim)]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryType, ValueHeadColumns,
    testing::Values(
        NamedType{"F32", gguf::kF32, 1, 4}, NamedType{"F16", gguf::kF16, 1, 2},
        NamedType{"BF16", gguf::kBF16, 1, 2}, NamedType{"Q8_0", gguf::kQ8_0, 32, 34},
        NamedType{"Q4_1", gguf::kQ4_1, 32, 20}, NamedType{"Q5_0", gguf::kQ5_0, 32, 22},
        NamedType{"Q4_K", gguf::kQ4_K, 256, 144}, NamedType{"Q6_K", gguf::kQ6_K, 256, 210},
        NamedType{"PQ2_0", gguf::kPQ2_0, 128, 34}, NamedType{"PTQ1_0", gguf::kPTQ1_0, 128, 28},
        NamedType{"Q2_0", gguf::kQ2_0, 64, 18}, NamedType{"TQ1_0", gguf::kTQ1_0, 256, 54},
        NamedType{"TQ2_0", gguf::kTQ2_0, 256, 66}, NamedType{"I2_S", gguf::kI2_S, 128, 32, 32}),
    [](const auto& kind) { return std::string(kind.param.name); });

GgufBuilder rotated(GgufBuilder file) {
  file.set("prism.hadamard.version", gguf::u32(1));
  file.set("prism.hadamard.block_size", gguf::u32(32));
  file.set("prism.hadamard.transform", gguf::text("normalized-sylvester-walsh-hadamard"));
  file.set("prism.hadamard.axis", gguf::text("input-last-dimension"));
  file.set("prism.hadamard.sign_mode", gguf::text("identity"));
  file.set(
      "prism.hadamard.weight_names",
      gguf::texts({"blk.0.attn_qkv.weight", "blk.0.attn_gate.weight", "blk.0.ssm_out.weight"}));
  file.set("prism.hadamard.inverse_weight_names", gguf::texts({}));
  file.set("prism.hadamard.gdn_v_grouped", gguf::boolean(true));
  return file;
}

// Its columns were grouped before the rotation, its siblings' rows are tiled all the same.
TEST(ValueHeads, ColumnsOfARotatedOutputStayAsTheyLie) {
  const auto bytes = rotated(model()).build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_out.weight"), counted(2, kInner));
  EXPECT_EQ(values(*checkpoint, "blk.0.attn_qkv.weight"), counted(kChannels, kHidden));
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_alpha.weight"), counted(kValueHeads, kHidden));
  for (const Tensor& tensor : checkpoint->tensors) {
    const bool is_rotated = tensor.name.find("attn_") != std::string_view::npos ||
                            tensor.name.find("ssm_out") != std::string_view::npos;
    EXPECT_EQ(tensor.rotation != format::kNoRotation, is_rotated) << tensor.name;
  }
}

TEST(ValueHeads, OneForEachKeyHeadHasNoOtherOrder) {
  auto file = model();
  file.set("qwen35.ssm.group_count", gguf::u32(kValueHeads));
  file.set("qwen35.ssm.state_size", gguf::u32(kKeyHeads * kKeyDim / kValueHeads));
  auto& qkv = file.tensor("blk.0.attn_qkv.weight");
  auto& taps = file.tensor("blk.0.ssm_conv1d.weight");
  constexpr std::size_t kRows = 2 * kValueHeads * (kKeyHeads * kKeyDim / kValueHeads) + kInner;
  qkv.dims[1] = taps.dims[1] = kRows;
  qkv.data.resize(kRows * kHidden * 4);
  taps.data.resize(kRows * 4 * 4);
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  for (const Tensor& tensor : checkpoint->tensors) {
    EXPECT_FALSE(tensor.tiled_rows) << tensor.name;
    EXPECT_FALSE(tensor.tiled_cols) << tensor.name;
  }
  EXPECT_EQ(values(*checkpoint, "blk.0.ssm_out.weight"), counted(2, kInner));
}

TEST(ValueHeads, OtherArchitecturesAreLeftAlone) {
  const auto bytes = model().set("general.architecture", gguf::text("llama")).build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(gguf::f32_bytes(values(*checkpoint, "blk.0.ssm_conv1d.weight")),
            tiled_rows(kChannels, 4, kQAndK, kValueDim));
}

struct Defect {
  const char* what;
  std::function<void(GgufBuilder&)> make;
  ErrorCode code;
  std::vector<std::string> message;
};

std::function<void(GgufBuilder&)> set(const char* key, std::uint32_t value) {
  return [=](GgufBuilder& file) { file.set(key, gguf::u32(value)); };
}

// One row less, or one more column than the keys say.
std::function<void(GgufBuilder&)> shorten(const char* name) {
  return [=](GgufBuilder& file) {
    auto& tensor = file.tensor(name);
    --tensor.dims.back();
    tensor.data.resize(tensor.data.size() - (tensor.dims.size() == 1 ? 4 : tensor.dims[0] * 4));
  };
}

TEST(ValueHeads, WhatDoesNotFitIsRefused) {
  const Defect kDefects[] = {
      {"no key",
       [](auto& f) { f.erase("qwen35.ssm.group_count"); },
       ErrorCode::damaged,
       {"'qwen35.ssm.group_count' is missing"}},
      {"no heads",
       set("qwen35.ssm.group_count", 0),
       ErrorCode::damaged,
       {"'qwen35.ssm.group_count' is 0, expected 1 to"}},
      {"more heads than can be",
       set("qwen35.ssm.state_size", 1u << 21),
       ErrorCode::damaged,
       {"'qwen35.ssm.state_size' is 2097152"}},
      {"heads that are not shared evenly",
       set("qwen35.ssm.group_count", 4),
       ErrorCode::damaged,
       {"'qwen35.ssm.time_step_rank' is 6", "multiple of 'qwen35.ssm.group_count', 4"}},
      {"heads of broken width",
       set("qwen35.ssm.inner_size", kInner + 1),
       ErrorCode::damaged,
       {"'qwen35.ssm.inner_size' is 769", "multiple of 'qwen35.ssm.time_step_rank', 6"}},
      {"other heads than those of q, k and v",
       set("qwen35.ssm.state_size", 32),
       ErrorCode::damaged,
       {"'blk.0.attn_qkv.weight' has 832 rows, expected 896"}},
      {"qkv", shorten("blk.0.attn_qkv.weight"), ErrorCode::damaged, {"831 rows, expected 832"}},
      {"gate",
       shorten("blk.0.attn_gate.weight"),
       ErrorCode::damaged,
       {"'blk.0.attn_gate.weight' has 767 rows, expected 768"}},
      {"alpha",
       shorten("blk.0.ssm_alpha.weight"),
       ErrorCode::damaged,
       {"'blk.0.ssm_alpha.weight' has 5 rows, expected 6"}},
      {"beta",
       shorten("blk.0.ssm_beta.weight"),
       ErrorCode::damaged,
       {"'blk.0.ssm_beta.weight' has 5 rows, expected 6"}},
      {"a", shorten("blk.0.ssm_a"), ErrorCode::damaged, {"'blk.0.ssm_a' has 5 values, expected 6"}},
      {"dt",
       shorten("blk.0.ssm_dt.bias"),
       ErrorCode::damaged,
       {"'blk.0.ssm_dt.bias' has 5 values, expected 6"}},
      {"channels",
       shorten("blk.0.ssm_conv1d.weight"),
       ErrorCode::damaged,
       {"'blk.0.ssm_conv1d.weight' has 831 channels, expected 832"}},
      {"taps",
       set("qwen35.ssm.conv_kernel", 3),
       ErrorCode::damaged,
       {"'blk.0.ssm_conv1d.weight' has 4 taps, expected 3"}},
      {"taps without a bound",
       set("qwen35.ssm.conv_kernel", 1025),
       ErrorCode::damaged,
       {"'qwen35.ssm.conv_kernel' is 1025, expected 1 to 1024"}},
      {"packed taps",
       [](auto& f) {
         auto& tensor = f.tensor("blk.0.ssm_conv1d.weight");
         f.set("qwen35.ssm.conv_kernel", gguf::u32(256));
         tensor.type = gguf::kTQ2_0;
         tensor.dims[0] = 256;
         tensor.data = gguf::some_bytes(kChannels * 66, 1);
       },
       ErrorCode::unsupported,
       {"'blk.0.ssm_conv1d.weight' is TQ2_0, expected F32, F16 or BF16"}},
      {"a packed vector",
       [](auto& f) {
         f.tensors.clear();
         f.set("qwen35.ssm.time_step_rank", gguf::u32(256));
         f.set("qwen35.ssm.inner_size", gguf::u32(256));
         f.add("blk.0.ssm_a", gguf::kTQ2_0, {256}, gguf::some_bytes(66, 1));
       },
       ErrorCode::unsupported,
       {"'blk.0.ssm_a' is TQ2_0, expected F32"}},
      {"inputs of the output",
       [](auto& f) {
         f.tensor("blk.0.ssm_out.weight").dims[0] = kInner / 2;
         f.tensor("blk.0.ssm_out.weight").dims[1] = 4;
       },
       ErrorCode::damaged,
       {"'blk.0.ssm_out.weight' has 384 inputs, expected 768"}},
      {"a flag about rotated outputs over a plain one",
       [](auto& f) {
         f = rotated(f);
         f.set("prism.hadamard.weight_names", gguf::texts({"blk.0.attn_gate.weight"}));
       },
       ErrorCode::unsupported,
       {"'blk.0.ssm_out.weight' is not rotated", "gdn_v_grouped"}},
      {"a rotated output of tiled heads",
       [](auto& f) { f = rotated(f).erase("prism.hadamard.gdn_v_grouped"); },
       ErrorCode::unsupported,
       {"'blk.0.ssm_out.weight'", "'prism.hadamard.gdn_v_grouped' = true"}},
      {"groups of two heads",
       [](auto& f) {
         f.tensors.clear();
         f.set("qwen35.ssm.inner_size", gguf::u32(384));
         f.add("blk.0.ssm_out.weight", gguf::kPQ2_0, {384, 1}, gguf::some_bytes(3 * 34, 1));
       },
       ErrorCode::unsupported,
       {"PQ2_0, of which 128 weights move together", "heads have 64"}},
      {"blocks of two heads",
       [](auto& f) {
         f.tensors.clear();
         f.set("qwen35.ssm.inner_size", gguf::u32(96));
         f.add("blk.0.ssm_out.weight", gguf::kQ8_0, {96, 1}, gguf::some_bytes(3 * 34, 1));
       },
       ErrorCode::unsupported,
       {"Q8_0, of which 32 weights move together", "heads have 16"}},
  };
  for (const Defect& defect : kDefects) {
    auto file = model();
    defect.make(file);
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_FALSE(checkpoint) << defect.what;
    EXPECT_EQ(checkpoint.error().code(), defect.code) << defect.what;
    for (const std::string& part : defect.message) {
      EXPECT_NE(checkpoint.error().message().find(part), std::string::npos)
          << defect.what << ": " << checkpoint.error().message();
    }
  }
}

GgufBuilder with_nextn() {
  auto file = model();
  file.set("qwen35.nextn_predict_layers", gguf::u32(1));
  file.add("blk.1.nextn.eh_proj.weight", gguf::kF32, {96, 2}, gguf::f32_bytes(counted(2, 96)));
  file.add("blk.1.attn_q.weight", gguf::kF32, {64, 2}, gguf::f32_bytes(counted(2, 64)));
  return file;
}

TEST(NextnLayers, AreLeftOut) {
  auto file = rotated(with_nextn());
  file.set("prism.hadamard.weight_names",
           gguf::texts({"blk.1.attn_q.weight", "blk.0.attn_gate.weight", "blk.0.ssm_out.weight"}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors.size(), model().tensors.size());
  // Of three widths those of the layer that stays, 32 and 768.
  ASSERT_EQ(checkpoint->rotations.size(), 2u);
  for (const Tensor& tensor : checkpoint->tensors) {
    if (tensor.rotation == format::kNoRotation) continue;
    EXPECT_EQ(checkpoint->rotations.at(tensor.rotation).width, tensor.cols()) << tensor.name;
  }
  ASSERT_EQ(checkpoint->warnings.size(), 1u);
  EXPECT_NE(checkpoint->warnings[0].find("2 tensors of multi-token prediction"), std::string::npos)
      << checkpoint->warnings[0];
}

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> all;
  for (const Tensor& tensor : checkpoint.tensors) all.emplace_back(tensor.name);
  return all;
}

GgufBuilder with_trunk_layers(std::uint32_t n, std::uint32_t nextn) {
  auto file = model();
  file.set("qwen35.block_count", gguf::u32(n));
  file.set("qwen35.nextn_predict_layers", gguf::u32(nextn));
  for (std::uint32_t layer = 1; layer < n; ++layer) {
    file.add("blk." + std::to_string(layer) + ".attn_norm.weight", gguf::kF32, {kHidden},
             gguf::f32_bytes(counted(kHidden, 1)));
  }
  return file;
}

TEST(NextnLayers, AFileWithoutThemKeepsItsTrunk) {
  for (const std::uint32_t nextn : {0u, 1u, 3u}) {
    auto file = with_trunk_layers(4, nextn);
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_EQ(names(*checkpoint).size(), file.tensors.size()) << nextn;
    EXPECT_TRUE(checkpoint->warnings.empty()) << nextn;
  }
}

TEST(NextnLayers, BehindACountOfTheTrunkAreLeftOut) {
  const auto bytes =
      with_trunk_layers(4, 1)
          .add("blk.4.attn_norm.weight", gguf::kF32, {1}, gguf::f32_bytes(counted(1, 1)))
          .add("blk.4.nextn.eh_proj.weight", gguf::kF32, {1}, gguf::f32_bytes(counted(1, 1)))
          .build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(names(*checkpoint).back(), "blk.3.attn_norm.weight");
}

TEST(NextnLayers, AreNoLayersOfTheTrunk) {
  auto file = with_trunk_layers(4, 2);
  file.add("blk.3.nextn.eh_proj.weight", gguf::kF32, {1}, gguf::f32_bytes(counted(1, 1)));
  const auto with_one = file.build();
  const auto without_the_last =
      with_trunk_layers(3, 2).set("qwen35.block_count", gguf::u32(4)).build();
  for (const auto& bytes : {with_one, without_the_last}) {
    const auto checkpoint = parse(bytes);
    ASSERT_FALSE(checkpoint);
    EXPECT_NE(checkpoint.error().message().find("is 2 of 4 layers, but layer 2 has no 'nextn.*'"),
              std::string::npos)
        << checkpoint.error().message();
  }
}

TEST(NextnLayers, AreFewerThanAll) {
  const auto bytes = with_nextn().set("qwen35.nextn_predict_layers", gguf::u32(2)).build();
  const auto checkpoint = parse(bytes);
  ASSERT_FALSE(checkpoint);
  EXPECT_NE(checkpoint.error().message().find("is 2, expected fewer than 'qwen35.block_count', 2"),
            std::string::npos)
      << checkpoint.error().message();
}

}  // namespace
}  // namespace tsq
