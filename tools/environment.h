// TSQ_* variables: a value for every option that the command line does not give.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsq/error.h"

namespace tsq::tool {

// "TSQ_CTX_SIZE" for -c,--ctx-size,--max-context: the first long name. Empty for what has no
// variable: positional and hidden options, --help and --version.
std::string environment_name(const CLI::Option& option);

// What the environment gives to a command.
struct EnvironmentOptions {
  std::vector<std::string> arguments;  // "--ctx-size=512"
  std::vector<std::string> settings;   // "TSQ_CTX_SIZE='512'"
};

// `given` are the options that the command line gives: it wins, also over variables of options that
// exclude one of them. An empty variable counts as not set. invalid_argument for a value that is
// none, and for two variables that exclude each other: the variable is named.
Result<EnvironmentOptions> environment_options(CLI::App& command,
                                               const std::vector<const CLI::Option*>& given);

// The value of a flag's variable. Nothing for what is neither "1" nor "0" by any of their names.
std::optional<bool> parse_flag(std::string_view text);

}  // namespace tsq::tool
