// Sound folders, of which a fuzz input replaces one file: its first byte says which.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "safetensors_builder.h"

namespace tsq::fuzz {

inline constexpr char kWeights = 'w', kIndex = 'i', kConfig = 'c', kTokenizer = 't',
                      kTokenizerConfig = 'd', kHybridWeights = 'h', kHybridConfig = 'q';

inline constexpr std::string_view kSoundConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",)"
    R"("hidden_size":8,"intermediate_size":8,"max_position_embeddings":16,"rms_norm_eps":1e-6,)"
    R"("num_attention_heads":2,"num_key_value_heads":1,"num_hidden_layers":2,)"
    R"("tie_word_embeddings":true,"quantization_config":{"quant_method":"bitnet"},)"
    R"("rope_scaling":{"rope_type":"llama3","factor":4,"low_freq_factor":1,)"
    R"("high_freq_factor":4,"original_max_position_embeddings":8},"eos_token_id":[1,2]})";

// Qwen 3.5: 2 key heads of 3, 4 value heads of 5.
inline constexpr std::string_view kHybridSoundConfig =
    R"({"architectures":["Qwen3_5ForConditionalGeneration"],"model_type":"qwen3_5",)"
    R"("tie_word_embeddings":true,"text_config":{"model_type":"qwen3_5_text","hidden_act":"silu",)"
    R"("hidden_size":8,"intermediate_size":16,"max_position_embeddings":64,"rms_norm_eps":1e-6,)"
    R"("head_dim":16,"num_attention_heads":2,"num_key_value_heads":1,"num_hidden_layers":2,)"
    R"("layer_types":["linear_attention","full_attention"],"linear_conv_kernel_dim":4,)"
    R"("linear_key_head_dim":3,"linear_num_key_heads":2,"linear_num_value_heads":4,)"
    R"("linear_value_head_dim":5,"rope_parameters":{"mrope_section":[1,1,0],"rope_theta":1e7,)"
    R"("partial_rotary_factor":0.25,"rope_type":"default"}}})";

inline std::vector<std::byte> hybrid_weights() {
  const struct {
    const char* name;
    std::vector<std::uint64_t> shape;
  } kTensors[] = {
      {"language_model.embed_tokens.weight", {6, 8}},
      {"language_model.layers.0.input_layernorm.weight", {8}},
      {"language_model.layers.0.linear_attn.in_proj_qkv.weight", {32, 8}},
      {"language_model.layers.0.linear_attn.in_proj_a.weight", {4, 8}},
      {"language_model.layers.0.linear_attn.conv1d.weight", {32, 1, 4}},
      {"language_model.layers.0.linear_attn.A_log", {4}},
      {"language_model.layers.0.linear_attn.norm.weight", {5}},
      {"language_model.layers.0.linear_attn.out_proj.weight", {8, 20}},
      {"language_model.layers.1.self_attn.q_norm.weight", {16}},
      {"visual.patch_embed.proj.weight", {2, 3, 2, 2, 2}},
  };
  safetensors::Builder file;
  for (const auto& tensor : kTensors) {
    std::size_t bytes = 4;
    for (const std::uint64_t dim : tensor.shape) bytes *= static_cast<std::size_t>(dim);
    file.add("model." + std::string(tensor.name), "F32", tensor.shape,
             std::vector<std::byte>(bytes));
  }
  return file.build();
}

inline constexpr std::string_view kSoundTokenizer =
    R"({"added_tokens":[{"id":4,"content":"<s>","special":true}],"normalizer":{"type":"NFC"},)"
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
    R"({"Sequence":{"id":"A"}}]},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"c":3},)"
    R"("merges":["a b",["ab","c"]]}})";

}  // namespace tsq::fuzz
