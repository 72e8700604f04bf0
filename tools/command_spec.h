// The commands and options as CLI11 has them, in the words of a manual page or a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tsq::tool {

// An option, or an argument without a name.
struct OptionSpec {
  std::vector<std::string> names;  // "-m", "--model"
  std::string value;               // "FILE"; empty for a flag
  std::vector<std::string> choices;
  bool is_file = false;
  bool repeatable = false;
  std::string description;
  std::string default_text;  // where the description does not say it
  std::string variable;      // of the environment
};

struct CommandSpec {
  std::vector<std::string> names;  // the name, then its aliases
  std::string description, usage;  // usage: "[OPTIONS] MODEL"
  std::vector<OptionSpec> options, log_options, arguments;

  const std::string& name() const { return names[0]; }
};

// The tool itself comes first: its options, and no arguments. What is hidden is left out.
std::vector<CommandSpec> command_specs(const CLI::App& app);

}  // namespace tsq::tool
