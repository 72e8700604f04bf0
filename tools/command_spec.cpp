#include "command_spec.h"

#include <sstream>

#include "arguments.h"
#include "environment.h"

namespace tsq::tool {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

OptionSpec option_spec(const CLI::Option& option) {
  OptionSpec spec;
  for (const std::string& name : option.get_snames()) spec.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) spec.names.push_back("--" + name);
  spec.description = option.get_description();
  spec.variable = environment_name(option);
  if (option.get_items_expected_max() == 0) return spec;
  spec.repeatable = option.get_items_expected_max() > 1;
  spec.value = !option.get_option_text().empty() ? option.get_option_text()
               : option.nonpositional()          ? option.get_type_name()
                                                 : option.get_name(true);
  spec.default_text = option.get_default_str();
  if (spec.value.find('|') != std::string::npos)
    spec.choices = split(spec.value.substr(0, spec.value.find(",...")), '|');
  for (const char* const file : {"FILE", "PATH", "MODEL", "SRC"})
    spec.is_file = spec.is_file || spec.value == file;
  return spec;
}

CommandSpec command_spec(const CLI::App& command) {
  CommandSpec spec;
  spec.names = {command.get_name()};
  spec.names.insert(spec.names.end(), command.get_aliases().begin(), command.get_aliases().end());
  spec.description = command.get_description();
  spec.usage = "[OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    const OptionSpec made = option_spec(*option);
    if (option->get_positional()) {
      spec.arguments.push_back(made);
      spec.usage += " " + made.value + (made.repeatable ? "..." : "");
    } else {
      (option->get_group() == kLogGroup ? spec.log_options : spec.options).push_back(made);
    }
  }
  return spec;
}

}  // namespace

std::vector<CommandSpec> command_specs(const CLI::App& app) {
  std::vector<CommandSpec> specs = {command_spec(app)};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    specs.push_back(command_spec(*command));
  return specs;
}

}  // namespace tsq::tool
