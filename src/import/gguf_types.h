// The type ids of GGUF. They end here: beyond this room a tensor has a SourceType.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "import/blocks.h"

namespace tsq::importer {

// The type that this id means, where tsq reads it and the id alone says (see sized_types.h).
std::optional<SourceType> source_type(std::uint32_t id);

// "type Q2_K, id 10"; ids that several programs use for different types give every name.
std::string describe_type(std::uint32_t id);

// Block size of a type that tsq does not read, where the id has one public meaning: enough to
// check that its tensors lie inside the file.
std::optional<BlockShape> foreign_block_shape(std::uint32_t id);

}  // namespace tsq::importer
