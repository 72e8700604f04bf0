// Hugging Face folders of Qwen 3.5, as transformers' models/qwen3_5 reads them.
#include <cmath>

#include "hf_files.h"
#include "import/blocks.h"

namespace tsq {
namespace {

using importer::Checkpoint;
using importer::Tensor;
using nlohmann::json;

json text_config() {
  return {{"model_type", "qwen3_5_text"},
          {"attention_bias", false},
          {"attn_output_gate", true},
          {"full_attention_interval", 2},
          {"head_dim", 16},
          {"hidden_act", "silu"},
          {"hidden_size", 8},
          {"intermediate_size", 16},
          {"layer_types", {"linear_attention", "full_attention"}},
          {"linear_conv_kernel_dim", 4},
          {"linear_key_head_dim", 3},
          {"linear_num_key_heads", 2},
          {"linear_num_value_heads", 4},
          {"linear_value_head_dim", 5},
          {"mamba_ssm_dtype", "float32"},
          {"max_position_embeddings", 64},
          {"mtp_num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_hidden_layers", 2},
          {"num_key_value_heads", 1},
          {"rms_norm_eps", 1e-6},
          {"rope_parameters",
           {{"mrope_interleaved", true},
            {"mrope_section", {1, 1, 0}},
            {"partial_rotary_factor", 0.25},
            {"rope_theta", 1e7},
            {"rope_type", "default"}}}};
}

json image_config() {
  return {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
          {"model_type", "qwen3_5"},
          {"text_config", text_config()},
          {"tie_word_embeddings", true},
          {"vision_config", {{"model_type", "qwen3_5_vision"}, {"hidden_act", "gelu"}}}};
}

struct Stored {
  const char *name, *gguf;
  std::vector<std::uint64_t> shape;
};
const Stored kTensors[] = {
    {"embed_tokens.weight", "token_embd.weight", {4, 8}},
    {"norm.weight", "output_norm.weight", {8}},
    {"layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", {8}},
    {"layers.0.post_attention_layernorm.weight", "blk.0.post_attention_norm.weight", {8}},
    {"layers.0.linear_attn.in_proj_qkv.weight", "blk.0.attn_qkv.weight", {32, 8}},
    {"layers.0.linear_attn.in_proj_z.weight", "blk.0.attn_gate.weight", {20, 8}},
    {"layers.0.linear_attn.in_proj_a.weight", "blk.0.ssm_alpha.weight", {4, 8}},
    {"layers.0.linear_attn.in_proj_b.weight", "blk.0.ssm_beta.weight", {4, 8}},
    {"layers.0.linear_attn.conv1d.weight", "blk.0.ssm_conv1d.weight", {32, 1, 4}},
    {"layers.0.linear_attn.A_log", "blk.0.ssm_a", {4}},
    {"layers.0.linear_attn.dt_bias", "blk.0.ssm_dt.bias", {4}},
    {"layers.0.linear_attn.norm.weight", "blk.0.ssm_norm.weight", {5}},
    {"layers.0.linear_attn.out_proj.weight", "blk.0.ssm_out.weight", {8, 20}},
    {"layers.1.self_attn.q_proj.weight", "blk.1.attn_q.weight", {64, 8}},
    {"layers.1.self_attn.k_proj.weight", "blk.1.attn_k.weight", {16, 8}},
    {"layers.1.self_attn.v_proj.weight", "blk.1.attn_v.weight", {16, 8}},
    {"layers.1.self_attn.o_proj.weight", "blk.1.attn_output.weight", {8, 32}},
    {"layers.1.self_attn.q_norm.weight", "blk.1.attn_q_norm.weight", {16}},
    {"layers.1.self_attn.k_norm.weight", "blk.1.attn_k_norm.weight", {16}},
    {"layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight", {16, 8}},
    {"layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight", {16, 8}},
    {"layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight", {8, 16}},
};

std::size_t count(const std::vector<std::uint64_t>& shape) {
  std::size_t n = 1;
  for (const std::uint64_t dim : shape) n *= static_cast<std::size_t>(dim);
  return n;
}

// Value i of every tensor is i / 16.
std::vector<float> sixteenths(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) / 16;
  return values;
}

safetensors::Builder weights(const std::string& prefix) {
  safetensors::Builder file;
  for (const Stored& tensor : kTensors) {
    const auto values = sixteenths(count(tensor.shape));
    file.add(prefix + tensor.name, "F32", tensor.shape, std::as_bytes(std::span(values)));
  }
  return file;
}

HfFolder image_model() {
  HfFolder folder;
  folder.config = image_config();
  folder.set_weights(weights("model.language_model."));
  return folder;
}

std::vector<float> values(const Checkpoint& checkpoint, std::string_view name) {
  const auto tensor = std::ranges::find(checkpoint.tensors, name, &Tensor::name);
  if (tensor == checkpoint.tensors.end()) throw std::runtime_error("no " + std::string(name));
  const auto cols = static_cast<std::size_t>(tensor->cols());
  std::vector<float> all(cols * static_cast<std::size_t>(tensor->rows()));
  for (std::uint64_t row = 0; row < tensor->rows(); ++row) {
    importer::decode_row(*tensor, row, all.data() + row * cols);
  }
  return all;
}

std::uint64_t number(const Checkpoint& checkpoint, const char* key) {
  const Value* const value = checkpoint.metadata.find(key);
  return value ? value->as_u64().value_or(0) : 0;
}

TEST(HfQwen35, SizesBecomeTheKeysOfAGguf) {
  auto folder = image_model();
  const auto checkpoint = folder.sound();
  EXPECT_EQ(checkpoint.metadata.find("general.architecture")->as_string(), "qwen35");
  const std::pair<const char*, std::uint64_t> kKeys[] = {
      {"qwen35.context_length", 64},
      {"qwen35.embedding_length", 8},
      {"qwen35.block_count", 2},
      {"qwen35.feed_forward_length", 16},
      {"qwen35.attention.head_count", 2},
      {"qwen35.attention.head_count_kv", 1},
      {"qwen35.attention.key_length", 16},
      {"qwen35.attention.value_length", 16},
      {"qwen35.rope.dimension_count", 4},
      {"qwen35.ssm.conv_kernel", 4},
      {"qwen35.ssm.state_size", 3},
      {"qwen35.ssm.group_count", 2},
      {"qwen35.ssm.time_step_rank", 4},
      {"qwen35.ssm.inner_size", 20},
      {"qwen35.full_attention_interval", 2},
  };
  for (const auto& [key, value] : kKeys) EXPECT_EQ(number(checkpoint, key), value) << key;
  EXPECT_EQ(checkpoint.metadata.find("qwen35.rope.freq_base")->as_f64(), 1e7);
  const auto sections = checkpoint.metadata.find("qwen35.rope.dimension_sections")->as_i64s();
  EXPECT_EQ(sections, (std::vector<std::int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(checkpoint.metadata.find("qwen35.nextn_predict_layers"), nullptr);
  EXPECT_EQ(checkpoint.metadata.find("qwen35.attention.recurrent_layers"), nullptr);
}

TEST(HfQwen35, TensorsOfBothKindsOfFolders) {
  HfFolder text;
  text.config = text_config();
  text.config["architectures"] = {"Qwen3_5ForCausalLM"};
  text.config["tie_word_embeddings"] = true;
  auto image = image_model();
  for (const char* prefix : {"model.", "model.language_model."}) {
    text.set_weights(weights(prefix));
    for (const auto& checkpoint : {text.sound(), image.sound()}) {
      ASSERT_EQ(checkpoint.tensors.size(), std::size(kTensors));
      for (std::size_t i = 0; i < std::size(kTensors); ++i) {
        EXPECT_EQ(checkpoint.tensors[i].name, kTensors[i].gguf);
      }
    }
  }
}

// RMSNorm multiplies by 1 + weight, the gated one by weight; g = -exp(A_log) * softplus(a +
// dt_bias); conv1d.weight is [channels, 1, taps].
TEST(HfQwen35, ValuesAreThoseThatAreMultipliedWith) {
  auto folder = image_model();
  const auto checkpoint = folder.sound();
  for (const Stored& tensor : kTensors) {
    const std::string name = tensor.gguf;
    auto expected = sixteenths(count(tensor.shape));
    if (name.find("norm") != std::string::npos && name != "blk.0.ssm_norm.weight") {
      for (float& value : expected) value += 1;
    }
    if (name == "blk.0.ssm_a") expected = {-1.0f, -1.0644945f, -1.1331485f, -1.2062302f};
    const auto actual = values(checkpoint, name);
    ASSERT_EQ(actual.size(), expected.size()) << name;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const std::size_t at = name == "blk.0.ssm_conv1d.weight" ? i % 32 * 4 + i / 32 : i;
      ASSERT_FLOAT_EQ(actual[i], expected[at]) << name << ' ' << i;
    }
  }
  const auto taps = std::ranges::find(checkpoint.tensors, "blk.0.ssm_conv1d.weight", &Tensor::name);
  EXPECT_EQ(taps->cols(), 32u);
  EXPECT_EQ(taps->rows(), 4u);
  EXPECT_EQ(taps->n_dims, 2u);
}

TEST(HfQwen35, WhatIsNotOfTheTextModelIsLeftOut) {
  auto folder = image_model();
  auto file = weights("model.language_model.");
  const auto some = sixteenths(8);
  for (const char* name : {"model.visual.pos_embed.weight", "model.visual.blocks.0.norm1.bias",
                           "model.visual.merger.norm.weight", "mtp.fc.weight", "mtp.norm.weight"}) {
    file.add(name, "F32", {8}, std::as_bytes(std::span(some)));
  }
  const auto checkpoint = folder.set_weights(file).sound();
  EXPECT_EQ(checkpoint.tensors.size(), std::size(kTensors));
  const std::vector<std::string> expected = {
      "3 tensors of the vision tower are left out: tsq reads text",
      "2 tensors of multi-token prediction are left out: tsq predicts one token at a time"};
  EXPECT_EQ(checkpoint.warnings, expected);
}

TEST(HfQwen35, LayersInNoPatternAreListed) {
  auto folder = image_model();
  auto& text = folder.config["text_config"];
  text["num_hidden_layers"] = 4;
  text["layer_types"] = {"linear_attention", "full_attention", "full_attention",
                         "linear_attention"};
  const auto checkpoint = folder.sound();
  EXPECT_EQ(checkpoint.metadata.find("qwen35.full_attention_interval"), nullptr);
  const Value* const flags = checkpoint.metadata.find("qwen35.attention.recurrent_layers");
  ASSERT_NE(flags, nullptr);
  EXPECT_EQ(flags->element_type(), ValueType::boolean);
  const std::vector<std::uint8_t> expected = {1, 0, 0, 1};
  EXPECT_TRUE(std::ranges::equal(flags->bytes().last(4), std::as_bytes(std::span(expected))));
  text["layer_types"] = {"linear_attention", "linear_attention", "full_attention",
                         "linear_attention"};
  EXPECT_EQ(number(folder.sound(), "qwen35.full_attention_interval"), 3u);
  text.erase("layer_types");
  EXPECT_EQ(number(folder.sound(), "qwen35.full_attention_interval"), 2u);
}

struct Change {
  const char *key, *value, *fragment;
  ErrorCode code = ErrorCode::damaged;
};

TEST(HfQwen35, RefusesWhatTheGraphDoesNotHave) {
  const Change kChanges[] = {
      {"attn_output_gate", "false", "'text_config.attn_output_gate' is false",
       ErrorCode::unsupported},
      {"attention_bias", "true", "'text_config.attention_bias' is true", ErrorCode::unsupported},
      {"hidden_act", "\"gelu\"", "'text_config.hidden_act' is 'gelu'", ErrorCode::unsupported},
      {"layer_types", "[\"linear_attention\", \"sliding_attention\"]",
       "'text_config.layer_types' is 'sliding_attention'", ErrorCode::unsupported},
      {"layer_types", "[\"full_attention\"]", "a type for each of num_hidden_layers"},
      {"linear_num_value_heads", "3",
       "'text_config.linear_num_value_heads' is 3, expected a multiple of 'linear_num_key_heads', "
       "2"},
      {"linear_value_head_dim", "4294967295", "value heads of 17179869180 values"},
      {"linear_key_head_dim", "0", "'text_config.linear_key_head_dim' is 0"},
      {"rope_parameters", "{\"partial_rotary_factor\": 0.3}", "turns 4.8 values of a head of 16",
       ErrorCode::unsupported},
      {"rope_parameters", "{\"mrope_section\": [1, 1]}", "mrope_section' is an array"},
      {"rope_parameters", "{\"mrope_section\": [1, -1, 1]}", "expected three sizes"},
      {"hidden_size", "null", "'text_config.hidden_size' is missing"},
  };
  for (const Change& change : kChanges) {
    auto folder = image_model();
    folder.config["text_config"][change.key] = json::parse(change.value);
    folder.expect_refused(change.code, change.fragment);
  }
  auto folder = image_model();
  folder.config.erase("text_config");
  folder.expect_refused(ErrorCode::damaged, "config.json: 'text_config' is missing");
  folder.config["text_config"] = 1;
  folder.expect_refused(ErrorCode::damaged, "'text_config' is 1, expected an object");
}

TEST(HfQwen35, OnlyConvolutionsOfOneChannelEachHaveThreeDims) {
  auto folder = image_model();
  const auto some = sixteenths(256);
  auto file = weights("model.language_model.");
  file.add("model.language_model.layers.1.linear_attn.conv1d.weight", "F32", {32, 2, 4},
           std::as_bytes(std::span(some)));
  folder.set_weights(file).expect_refused(ErrorCode::damaged, "has 3 dims");
}

TEST(HfQwen35, ConvolutionsHaveTheirTapsPlainly) {
  auto folder = image_model();
  folder.config["text_config"]["linear_conv_kernel_dim"] = 3;
  folder.expect_refused(ErrorCode::damaged, "conv1d.weight' has 4 taps, expected 3");
  folder = image_model();
  folder.config["quantization_config"] = {{"quant_method", "bitnet"}};
  folder.config["text_config"]["quantization_config"] = {{"quant_method", "bitnet"}};
  safetensors::Builder file;
  const std::vector<std::byte> bytes(8 * 128);
  file.add("model.language_model.layers.0.linear_attn.conv1d.weight", "U8", {8, 128}, bytes);
  folder.set_weights(file).expect_refused(ErrorCode::unsupported,
                                          "conv1d.weight' is packed U8, expected F32");
}

}  // namespace
}  // namespace tsq
