// What happens to the command line before CLI11 sees it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tsq/error.h"

namespace tsq::tool {

// Refuses, by name, commands and options that are documented but not built yet, which CLI11 would
// misread ("-ngl" as "-n gl") or call unknown, and unknown commands and words behind one dash.
// Gives
// "--name=" and "-x=value" their value as an argument of its own: CLI11 would take the next
// argument for the one and "=value" for the other.
Result<std::vector<std::string>> prepare_arguments(const CLI::App& app,
                                                   const std::vector<std::string>& arguments);

}  // namespace tsq::tool
