// config.json of a Hugging Face folder: which model it is, and its sizes as the keys of a GGUF.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "import/hf_names.h"
#include "import/metadata_builder.h"

namespace tsq::importer {

// Of BitNet's packed weights: what a product with the bare codes and `weight_scale` gives y.
enum class PackedScale : std::uint8_t { none, multiplies, divides };

struct HfConfig {
  const HfFamily* family = nullptr;
  std::uint64_t n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::uint64_t conv_taps = 0;  // of gated DeltaNet
  bool tied_head = false;
  PackedScale packed = PackedScale::none;
  std::vector<float> rope_divisors;  // one a frequency, or none: rope_freqs.weight
};

// The object that describes the model for text: text_config of a model of images, else all of it.
Json text_config(const Json& config);

// Adds the keys that GGUF has for what config.json says. unsupported: another architecture, or a
// setting that its graph does not have, by name; damaged: a value that is missing or cannot be.
Result<HfConfig> read_hf_config(const Json& config, MetadataBuilder& keys);

}  // namespace tsq::importer
