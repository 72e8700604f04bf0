// The tensors of safetensors files as those of a GGUF.
#pragma once

#include <span>
#include <string>

#include "import/checkpoint.h"
#include "import/hf_config.h"
#include "import/safetensors.h"

namespace tsq::importer {

// Appends them, and rope_freqs.weight, to the checkpoint; see parse_hf().
Result<void> add_hf_tensors(std::span<const Safetensors> files, const HfConfig& model,
                            Checkpoint& checkpoint);

}  // namespace tsq::importer
