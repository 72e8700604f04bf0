// The models of `transformers` that tsq imports, and their tensors' names in GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tsq::importer {

struct HfName {
  std::string_view name, gguf;
};

// One architecture: a row of the table in hf_names.cpp.
struct HfFamily {
  std::string_view model_type, class_name;  // in config.json
  std::string_view architecture;            // in GGUF
  std::string_view activation;              // the hidden_act of its graph
  // GGUF's rotary positions turn neighbours, transformers' the two halves of a head: the rows of q
  // and k are reordered.
  bool pairs = false;
  bool rope_freqs = false;           // takes Llama 3's divisors of frequencies
  bool kv_heads_default = false;     // num_key_value_heads may be absent: one for each head
  bool in_text_config = false;       // config.json describes a model of images too
  bool gated_delta_net = false;      // Qwen 3.5: norms of 1 + w, layers of two kinds
  std::span<const HfName> in_layer;  // names behind model.layers.N. and blk.N.
};

const HfFamily* find_family(std::string_view model_type);
std::string family_names();  // of messages

// The name in GGUF; nothing for a tensor that the model does not have.
std::optional<std::string> gguf_name(const HfFamily& family, std::uint64_t n_layers,
                                     std::string_view name);

}  // namespace tsq::importer
