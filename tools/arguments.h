// What happens to the command line before CLI11 sees it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tsq/error.h"

namespace tsq::tool {

// Refuses, by name, commands and options that are documented but not built yet, which CLI11 would
// misread ("-ngl" as "-n gl") or call unknown, and unknown commands. Gives "--name=" its empty
// value as an argument of its own, since CLI11 would take the next argument for it.
Result<std::vector<std::string>> prepare_arguments(const CLI::App& app,
                                                   const std::vector<std::string>& arguments);

}  // namespace tsq::tool
