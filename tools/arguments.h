// What happens to the command line before CLI11 sees it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tsq/error.h"

namespace tsq::tool {

// An option that the command line gives, and its value as it stands there; empty for a flag.
struct GivenOption {
  const CLI::Option* option = nullptr;
  std::string value;
};

struct CommandLine {
  CLI::App* command = nullptr;  // null where none is named, or one that does not exist
  std::vector<GivenOption> given;
};

CommandLine read_command_line(CLI::App& app, const std::vector<std::string>& arguments);

// Refuses, by name, commands and options that are documented but not built yet, which CLI11 would
// misread ("-ngl" as "-n gl") or call unknown, and commands and options that do not exist. Gives
// "--name=" and "-x=value" their value as an argument of its own: CLI11 would take the next
// argument for the one and "=value" for the other.
Result<std::vector<std::string>> prepare_arguments(CLI::App& app,
                                                   const std::vector<std::string>& arguments);

// The long names of a command's options, "--temp" and so on.
std::vector<std::string> option_names(const CLI::App& command);
Error unknown_option(const CLI::App& command, const std::string& argument);

// Declares --log-level and --log-json, in a group of their own.
inline constexpr const char* kLogGroup = "Log";
void add_log_options(CLI::App& command);
// As the command line wants it, or else the environment. What cannot be understood counts as not
// given: it becomes an error later.
void set_log_as_asked(const CommandLine& line);

}  // namespace tsq::tool
