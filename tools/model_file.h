// Which model the command line means, and what kind of file it is.
#pragma once

#include <filesystem>
#include <string>

#include "tsq/error.h"

namespace tsq::tool {

// `given` if it is not empty; else models/fairy-tales.tsq in this folder or one above it, no higher
// than the repository's root. invalid_argument where there is none.
Result<std::filesystem::path> model_path(const std::string& given);

// By its first four bytes.
bool is_gguf(const std::filesystem::path& path);
bool is_tsq(const std::filesystem::path& path);

// Opening failed: the same error, or for a GGUF what to do with it.
Error with_convert_hint(const Error& error, const std::filesystem::path& path);

}  // namespace tsq::tool
