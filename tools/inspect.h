// The renderings of inspect.
#pragma once

#include <string>

#include "format/reader.h"
#include "import/gguf.h"

namespace tsq::tool {

std::string inspect_text(const format::File& file);
std::string inspect_json(const format::File& file);
std::string inspect_text(const importer::Checkpoint& checkpoint);
std::string inspect_json(const importer::Checkpoint& checkpoint);

}  // namespace tsq::tool
