// A .tsq file of any size that Loader opens, and what opening it costs.
#pragma once

#include <cstdint>
#include <filesystem>

#include "format/tokenizer_section.h"
#include "tsq/error.h"

namespace tsq::test {

// As large as SmolLM2's: 49,152 tokens, 48,896 merges.
format::Vocabulary big_vocabulary();

// A llama of hidden size 4096 with rotated t2 matrices, its scales and norms 0, and with as many
// layers as reach `bytes`: one at least, about 100 MB.
Result<void> write_big_file(const std::filesystem::path& path, std::uint64_t bytes,
                            const format::Vocabulary& vocabulary);

// Of this process, from /proc/self/smaps_rollup.
std::uint64_t private_dirty_bytes();

}  // namespace tsq::test
