// Folders of model_type bitnet (BitNet b1.58 2B4T): names, keys, packed matrices.
#include <gtest/gtest.h>

#include <algorithm>

#include "hf_files.h"
#include "import/blocks.h"

namespace tsq {
namespace {

using importer::SourceType;

constexpr std::size_t kHidden = 128, kFfn = 256;

nlohmann::json bitnet_config() {
  auto config = llama_config();
  config.update({{"architectures", {"BitNetForCausalLM"}},
                 {"model_type", "bitnet"},
                 {"hidden_act", "relu2"},
                 {"hidden_size", kHidden},
                 {"intermediate_size", kFfn},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"rope_theta", 500000.0},
                 {"quantization_config",
                  {{"quant_method", "bitnet"},
                   {"linear_class", "autobitlinear"},
                   {"quantization_mode", "offline"}}}});
  return config;
}

// Every tensor that a layer has, as the published checkpoint names them.
HfFolder bitnet_folder() {
  safetensors::Builder file;
  const auto norm = [&](const std::string& name, std::uint64_t n) {
    file.add(name, "BF16", {n}, std::vector<std::byte>(2 * n));
  };
  const auto packed = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const std::string full = "model.layers.0." + name;
    file.add(full + ".weight", "U8", {rows / 4, cols},
             std::vector<std::byte>(rows / 4 * cols, std::byte{0b10'01'00'10}));
    constexpr std::byte kHalf[] = {std::byte{0x00}, std::byte{0x3f}};
    file.add(full + ".weight_scale", "BF16", {1}, kHalf);
  };
  file.add("model.embed_tokens.weight", "BF16", {4, kHidden}, std::vector<std::byte>(8 * kHidden));
  norm("model.norm.weight", kHidden);
  norm("model.layers.0.input_layernorm.weight", kHidden);
  norm("model.layers.0.post_attention_layernorm.weight", kHidden);
  norm("model.layers.0.self_attn.attn_sub_norm.weight", kHidden);
  norm("model.layers.0.mlp.ffn_sub_norm.weight", kFfn);
  packed("self_attn.q_proj", kHidden, kHidden);
  packed("self_attn.k_proj", kHidden / 2, kHidden);
  packed("self_attn.v_proj", kHidden / 2, kHidden);
  packed("self_attn.o_proj", kHidden, kHidden);
  packed("mlp.gate_proj", kFfn, kHidden);
  packed("mlp.up_proj", kFfn, kHidden);
  packed("mlp.down_proj", kHidden, kFfn);
  HfFolder folder;
  folder.config = bitnet_config();
  folder.set_weights(file);
  return folder;
}

TEST(BitNetTest, EveryTensorHasItsNameOfTheGguf) {
  auto folder = bitnet_folder();
  const auto checkpoint = folder.sound();
  std::vector<std::string> names;
  for (const auto& each : checkpoint.tensors) names.emplace_back(each.name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "blk.0.attn_k.weight", "blk.0.attn_norm.weight", "blk.0.attn_output.weight",
                       "blk.0.attn_q.weight", "blk.0.attn_sub_norm.weight", "blk.0.attn_v.weight",
                       "blk.0.ffn_down.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_norm.weight",
                       "blk.0.ffn_sub_norm.weight", "blk.0.ffn_up.weight", "output_norm.weight",
                       "token_embd.weight"}));
}

// Rotary positions on halves: no row changes its place.
TEST(BitNetTest, MatricesAreTernaryWithOneScaleAndActivationsPerToken) {
  auto folder = bitnet_folder();
  const auto checkpoint = folder.sound();
  std::size_t packed = 0;
  for (const auto& each : checkpoint.tensors) {
    if (each.type != SourceType::packed_u8) continue;
    ++packed;
    EXPECT_EQ(each.scale, 0.5f) << each.name;
    EXPECT_EQ(each.activation_quant, format::ActivationQuant::per_token) << each.name;
    EXPECT_EQ(each.head_rows, 0u) << each.name;
  }
  EXPECT_EQ(packed, 7u);
}

TEST(BitNetTest, KeysAreThoseOfThePublishedGguf) {
  auto folder = bitnet_folder();
  const auto checkpoint = folder.sound();
  const auto& metadata = checkpoint.metadata;
  EXPECT_EQ(*metadata.require_string("general.architecture"), "bitnet-b1.58");
  EXPECT_EQ(*metadata.require_u64("bitnet-b1.58.embedding_length"), kHidden);
  EXPECT_EQ(*metadata.require_u64("bitnet-b1.58.feed_forward_length"), kFfn);
  EXPECT_EQ(*metadata.require_u64("bitnet-b1.58.attention.head_count_kv"), 2u);
  EXPECT_EQ(*metadata.require_f64("bitnet-b1.58.rope.freq_base"), 500000.0);
}

// With SiLU it would be another model.
TEST(BitNetTest, RefusesAnotherActivation) {
  auto folder = bitnet_folder();
  folder.config["hidden_act"] = "silu";
  const auto checkpoint = folder.parse();
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), ErrorCode::unsupported);
  EXPECT_NE(checkpoint.error().message().find("'hidden_act' is 'silu', tsq has 'relu2'"),
            std::string::npos)
      << checkpoint.error().message();
}

}  // namespace
}  // namespace tsq
