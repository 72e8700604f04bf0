// A .tsq file of any size with a vocabulary of SmolLM2's size, and what opening it costs.
#pragma once

#include <cstdint>
#include <filesystem>

#include "format/reader.h"
#include "format/tokenizer_section.h"

namespace tsq::format {

// 49,152 tokens, 48,896 merges; rotated t2 matrices of 4096 x 4096, as many as fill `bytes`.
Result<void> write_big_file(const std::filesystem::path& path, std::uint64_t bytes);

// What a model is opened as before anything reads its weights.
struct OpenedModel {
  OpenedFile opened;
  TokenizerView tokenizer;
};
Result<OpenedModel> open_model(const std::filesystem::path& path);

// Of this process, from /proc/self/smaps_rollup.
std::uint64_t private_dirty_bytes();

}  // namespace tsq::format
