#include "arguments.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/errorf.h"

namespace tsq::tool {
namespace {

constexpr std::array<std::string_view, 1> kUnbuiltCommands = {"serve"};

struct UnbuiltOption {
  std::string_view command, name;
};
constexpr UnbuiltOption kUnbuiltOptions[] = {
    {"run", "-cnv"},
    {"run", "--conversation"},
    {"run", "-sys"},
    {"run", "--system-prompt"},
    {"run", "--think"},
    {"run", "--think-budget"},
    {"run", "--chat-template"},
    {"run", "-ngl"},
    {"run", "--gpu-layers"},
    {"run", "--n-gpu-layers"},
    {"run", "--repack"},
    {"run", "--adapter"},
    {"run", "--dtype"},
    {"convert", "--ternarize"},
    {"convert", "--bits-ternary"},
    {"convert", "--residual-ratio"},
    {"convert", "--residual-rank"},
    {"convert", "--hadamard-order"},
    {"convert", "--block-size"},
    {"convert", "--rle-threshold"},
    {"convert", "--h-block"},
    {"perplexity", "-ngl"},
    {"perplexity", "--repack"},
    {"bench", "-ngl"},
    {"bench", "--n-gpu-layers"},
    {"bench", "--repack"},
};

bool is_unbuilt(std::string_view command, std::string_view name) {
  return std::any_of(std::begin(kUnbuiltOptions), std::end(kUnbuiltOptions),
                     [&](const auto& o) { return o.command == command && o.name == name; });
}

bool takes_value(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  const auto* option = command.get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// "-hf" or "-fa", which CLI11 would take apart into options of one letter, or into one and its
// value. A number may stand right behind a letter: -n20.
bool is_unknown_word(const CLI::App& command, const std::string& name) {
  if (name.size() < 3 || name[0] != '-' || name[1] == '-') return false;
  if (command.get_option_no_throw(name) != nullptr) return false;
  return !(takes_value(command, name.substr(0, 2)) &&
           (std::isdigit(static_cast<unsigned char>(name[2])) || name[2] == '-'));
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const CLI::App* c) { return c->check_name(name); });
  return found == commands.end() ? nullptr : *found;
}

}  // namespace

Result<std::vector<std::string>> prepare_arguments(const CLI::App& app,
                                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> prepared;
  const CLI::App* command = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      prepared.insert(prepared.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                      arguments.end());
      break;
    }
    if (command == nullptr) {
      prepared.push_back(argument);
      if (argument.starts_with('-')) continue;
      if (std::find(kUnbuiltCommands.begin(), kUnbuiltCommands.end(), argument) !=
          kUnbuiltCommands.end())
        return errorf(ErrorCode::invalid_argument, "%s is not built yet", argument.c_str());
      command = find_command(app, argument);
      if (command == nullptr)
        return errorf(ErrorCode::invalid_argument, "unknown command '%s'; see 'tsq --help'",
                      printable(argument).c_str());
      continue;
    }
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (is_unbuilt(command->get_name(), name))
      return errorf(ErrorCode::invalid_argument, "%s: %s is not built yet",
                    command->get_name().c_str(), name.c_str());
    if (is_unknown_word(*command, name))
      return errorf(ErrorCode::invalid_argument, "%s: unknown option '%s'; see 'tsq %s --help'",
                    command->get_name().c_str(), printable(argument).c_str(),
                    command->get_name().c_str());
    if (takes_value(*command, argument) && i + 1 < arguments.size()) {
      prepared.push_back(argument);
      prepared.push_back(arguments[++i]);
    } else if (equals != std::string::npos && takes_value(*command, name) &&
               (name.size() == 2 || equals + 1 == argument.size())) {
      prepared.push_back(name);
      prepared.push_back(argument.substr(equals + 1));
    } else {
      prepared.push_back(argument);
    }
  }
  return prepared;
}

}  // namespace tsq::tool
