// What a file that is no GGUF is: people pass downloads that failed and files of other programs.
#pragma once

#include <cstddef>
#include <span>

#include "tsq/error.h"

namespace tsq::importer {

// Whether they start with the length of a JSON header that fits, and '{'.
bool is_safetensors(std::span<const std::byte> bytes);

// The error for bytes that do not start with GGUF's magic.
Error not_gguf(std::span<const std::byte> bytes);

}  // namespace tsq::importer
