// GGUF, versions 2 and 3, single and split files.
#pragma once

#include <filesystem>
#include <span>

#include "import/checkpoint.h"

namespace tsq::importer {

// All parts of one checkpoint, in any order; a single file is one part. Whatever the bytes, the
// answer is a checkpoint whose every span is readable, or an Error.
Result<Checkpoint> parse_gguf(std::span<const Bytes> parts, const AssumedLayouts& assumed = {});

// One path: a file, or any part of a split one, whose other parts lie beside it under their usual
// names (NAME-00001-of-00003.gguf). Several: exactly the parts.
Result<OpenedCheckpoint> open_gguf(std::span<const std::filesystem::path> paths,
                                   const AssumedLayouts& assumed = {});

}  // namespace tsq::importer
