// Any checkpoint that tsq converts, by what it is given.
#pragma once

#include <filesystem>
#include <span>

#include "import/checkpoint.h"

namespace tsq::importer {

// sources: a folder with config.json and safetensors, a .safetensors file in one, a .tsq file, a
// GGUF file, or any part, or all parts, of a split one. Other files are refused by what they are.
Result<OpenedCheckpoint> open(std::span<const std::filesystem::path> sources,
                              const AssumedLayouts& assumed = {});

}  // namespace tsq::importer
