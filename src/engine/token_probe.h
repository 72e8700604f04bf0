// The token probe: what a model says to a fixed text, stored in its file and replayed by verify.
#pragma once

#include <filesystem>
#include <functional>

#include "format/file.h"
#include "tsq/model.h"

namespace tsq {

// Steps done of all, called now and then; false cancels.
using ProbeProgress = std::function<bool(int done, int total)>;

// The probe of a model file on the int8 path: up to 32 tokens of a fixed text and 16 greedy ones
// (fewer where the context is shorter). Its state says why where there is none: no graph for the
// architecture, no tokenizer.
Result<format::TokenProbe> compute_token_probe(const std::filesystem::path& path,
                                               const ProbeProgress& progress = {});

// Replays a stored probe (state present), its text through the tokenizer too. An error (damaged) gives what was expected and found.
Result<void> check_token_probe(const std::filesystem::path& path, const format::TokenProbe& probe,
                               const ProbeProgress& progress = {});

}  // namespace tsq
