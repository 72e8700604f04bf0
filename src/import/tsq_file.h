// A .tsq file as a checkpoint, so that it can be converted again.
#pragma once

#include <filesystem>

#include "import/gguf.h"

namespace tsq::importer {

// By its first four bytes.
bool is_tsq(std::span<const std::byte> bytes);

// Makes every check that format::verify makes, the token probe's replay apart: what is wrong with
// the file would become part of the next one. Sections behind the data are left out, with a
// warning. damaged; unsupported where format::File::parse says so.
Result<Checkpoint> parse_tsq(std::span<const std::byte> bytes);

// Nothing where the file cannot be opened, or is of another kind.
bool is_tsq(const std::filesystem::path& path);
Result<OpenedCheckpoint> open_tsq(const std::filesystem::path& path);

}  // namespace tsq::importer
