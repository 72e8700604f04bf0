// The renderings of inspect.
#pragma once

#include <string>

#include "format/reader.h"
#include "import/checkpoint.h"

namespace tsq::tool {

std::string inspect_text(const format::File& file);
std::string inspect_json(const format::File& file);
// format: what the checkpoint was read from.
std::string inspect_text(const importer::Checkpoint& checkpoint, const char* format);
std::string inspect_json(const importer::Checkpoint& checkpoint, const char* format);

}  // namespace tsq::tool
