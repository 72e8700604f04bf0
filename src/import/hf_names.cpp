#include "import/hf_names.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace tsq::importer {
namespace {

constexpr HfName kOuter[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

constexpr HfName kQwen3[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
};
constexpr auto kLlama = std::span(kQwen3).first<9>();  // no norms of q and k

constexpr HfName kBitNet[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.attn_sub_norm.weight", "attn_sub_norm.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.ffn_sub_norm.weight", "ffn_sub_norm.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};

constexpr HfName kQwen35[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
    {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
    {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
    {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
    {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.norm.weight", "ssm_norm.weight"},
    {"linear_attn.out_proj.weight", "ssm_out.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};

constexpr HfFamily kFamilies[] = {
    {.model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .architecture = "llama",
     .activation = "silu",
     .pairs = true,
     .rope_freqs = true,
     .kv_heads_default = true,
     .in_layer = kLlama},
    {.model_type = "mistral",
     .class_name = "MistralForCausalLM",
     .architecture = "llama",
     .activation = "silu",
     .pairs = true,
     .rope_freqs = true,
     .in_layer = kLlama},
    {.model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .architecture = "qwen3",
     .activation = "silu",
     .in_layer = kQwen3},
    {.model_type = "qwen3_5",
     .class_name = "Qwen3_5ForConditionalGeneration",
     .architecture = "qwen35",
     .activation = "silu",
     .in_text_config = true,
     .gated_delta_net = true,
     .in_layer = kQwen35},
    {.model_type = "qwen3_5_text",
     .class_name = "Qwen3_5ForCausalLM",
     .architecture = "qwen35",
     .activation = "silu",
     .gated_delta_net = true,
     .in_layer = kQwen35},
    {.model_type = "bitnet",
     .class_name = "BitNetForCausalLM",
     .architecture = "bitnet-b1.58",
     .activation = "relu2",
     .kv_heads_default = true,
     .in_layer = kBitNet},
};

std::optional<std::string_view> find_name(std::span<const HfName> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &HfName::name);
  if (found == names.end()) return std::nullopt;
  return found->gguf;
}

}  // namespace

const HfFamily* find_family(std::string_view model_type) {
  const auto* const found = std::ranges::find(kFamilies, model_type, &HfFamily::model_type);
  return found == std::end(kFamilies) ? nullptr : found;
}

std::string family_names() {
  std::string names;
  for (const HfFamily& family : kFamilies) {
    if (!names.empty()) names += ' ';
    names += family.model_type;
  }
  return names;
}

std::optional<std::string> gguf_name(const HfFamily& family, std::uint64_t n_layers,
                                     std::string_view name) {
  // The text half of a model of images.
  std::string text;
  constexpr std::string_view kText = "model.language_model.";
  if (family.gated_delta_net && name.starts_with(kText)) {
    text = "model." + std::string(name.substr(kText.size()));
    name = text;
  }
  if (const auto outer = find_name(kOuter, name)) return std::string(*outer);
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  std::uint64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  const auto digits = static_cast<std::size_t>(end - name.data());
  const std::string number(name.substr(0, digits));
  if (error != std::errc() || layer >= n_layers || number != std::to_string(layer) ||
      !name.substr(digits).starts_with('.')) {
    return std::nullopt;
  }
  const auto inner = find_name(family.in_layer, name.substr(digits + 1));
  if (!inner) return std::nullopt;
  return "blk." + number + '.' + std::string(*inner);
}

}  // namespace tsq::importer
