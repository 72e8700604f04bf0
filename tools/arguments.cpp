#include "arguments.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/errorf.h"
#include "environment.h"
#include "log.h"
#include "suggest.h"

namespace tsq::tool {
namespace {

constexpr std::array<std::string_view, 1> kUnbuiltCommands = {"serve"};

struct UnbuiltOption {
  std::string_view command, name;
};
constexpr UnbuiltOption kUnbuiltOptions[] = {
    {"run", "--chat-template"},      {"run", "--dtype"},
    {"convert", "--ternarize"},      {"convert", "--bits-ternary"},
    {"convert", "--residual-ratio"}, {"convert", "--residual-rank"},
    {"convert", "--hadamard-order"}, {"convert", "--block-size"},
    {"convert", "--rle-threshold"},  {"convert", "--h-block"},
};
// Of every command that runs a model.
constexpr std::string_view kUnbuiltEngineOptions[] = {"-ngl", "--gpu-layers", "--n-gpu-layers"};

bool is_unbuilt(std::string_view command, std::string_view name) {
  if (std::any_of(std::begin(kUnbuiltOptions), std::end(kUnbuiltOptions),
                  [&](const auto& o) { return o.command == command && o.name == name; }))
    return true;
  const bool runs_a_model = command == "run" || command == "perplexity" || command == "bench";
  return runs_a_model &&
         std::find(std::begin(kUnbuiltEngineOptions), std::end(kUnbuiltEngineOptions), name) !=
             std::end(kUnbuiltEngineOptions);
}

bool takes_value(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  const auto* option = command.get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// An option that does not exist; of one dash also "-hf" or "-fa", which CLI11 would take apart into
// options of one letter, or into one and its value. A number may stand right behind a letter: -n20.
bool is_unknown(const CLI::App& command, const std::string& name) {
  if (name.size() < 3 || name[0] != '-' || command.get_option_no_throw(name) != nullptr)
    return false;
  return !(name[1] != '-' && takes_value(command, name.substr(0, 2)) &&
           (std::isdigit(static_cast<unsigned char>(name[2])) || name[2] == '-'));
}

// Words behind one dash, as llama.cpp has them and CLI11 has not.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"-cnv", "--conversation"},  {"-no-cnv", "--no-conversation"},
    {"-sys", "--system-prompt"}, {"-sysf", "--system-prompt-file"},
    {"-st", "--single-turn"},
};

std::string with_two_dashes(const CLI::App& command, const std::string& argument) {
  const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
  for (const auto& [word, full] : kWords)
    if (name == word && command.get_option_no_throw(std::string(full)) != nullptr)
      return std::string(full) + argument.substr(word.size());
  return argument;
}

CLI::App* find_command(CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const CLI::App* c) { return c->check_name(name); });
  return found == commands.end() ? nullptr : *found;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    const auto& aliases = command->get_aliases();
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  return names;
}

// The option that an argument names, and the value that stands in the same argument.
GivenOption option_of(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return {};
  const auto equals = argument.find('=');
  if (const auto* option = command.get_option_no_throw(argument.substr(0, equals)))
    return {option, equals == std::string::npos ? "" : argument.substr(equals + 1)};
  if (argument[1] == '-') return {};
  return {command.get_option_no_throw(argument.substr(0, 2)), argument.substr(2)};  // -n20
}

}  // namespace

CommandLine read_command_line(CLI::App& app, const std::vector<std::string>& arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (line.command == nullptr) {
      if (!arguments[i].starts_with('-')) line.command = find_command(app, arguments[i]);
      if (line.command == nullptr && !arguments[i].starts_with('-')) break;
      continue;
    }
    const std::string argument = with_two_dashes(*line.command, arguments[i]);
    GivenOption given = option_of(*line.command, argument);
    if (given.option == nullptr) continue;
    if (takes_value(*line.command, argument) && i + 1 < arguments.size())
      given.value = arguments[++i];
    line.given.push_back(std::move(given));
  }
  return line;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

Error unknown_option(const CLI::App& command, const std::string& argument) {
  const std::string name = command.get_parent() == nullptr ? "" : command.get_name();
  return errorf(ErrorCode::invalid_argument, "%sunknown option '%s'%s",
                name.empty() ? "" : (name + ": ").c_str(), printable(argument).c_str(),
                see_help(argument.substr(0, argument.find('=')), option_names(command),
                         name.empty() ? "tsq" : "tsq " + name)
                    .c_str());
}

void add_log_options(CLI::App& command) {
  // set_log_as_asked() reads them before anything else can go wrong; CLI11 checks them.
  command.add_option("--log-level")
      ->description("say no more than this on stderr [info]")
      ->check(CLI::IsMember({"error", "warn", "info", "debug"}))
      ->option_text("error|warn|info|debug")
      ->group(kLogGroup);
  command.add_flag("--log-json")
      ->description("each line on stderr is a JSON object: time, level, message, fields")
      ->group(kLogGroup);
}

void set_log_as_asked(const CommandLine& line) {
  std::string level, json;
  if (const char* const value = std::getenv("TSQ_LOG_LEVEL")) level = value;
  if (const char* const value = std::getenv("TSQ_LOG_JSON")) json = value;
  for (const GivenOption& given : line.given) {
    if (given.option->check_lname("log-level")) level = given.value;
    if (given.option->check_lname("log-json")) json = given.value.empty() ? "1" : given.value;
  }
  constexpr std::array kLevels = {
      std::pair("error", LogLevel::error), std::pair("warn", LogLevel::warn),
      std::pair("info", LogLevel::info), std::pair("debug", LogLevel::debug)};
  const auto* const found = std::find_if(kLevels.begin(), kLevels.end(),
                                         [&](const auto& entry) { return entry.first == level; });
  set_log(found == kLevels.end() ? LogLevel::info : found->second,
          parse_flag(json).value_or(false));
}

Result<std::vector<std::string>> prepare_arguments(CLI::App& app,
                                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> prepared;
  const CLI::App* command = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = arguments[i];
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
        return errorf(ErrorCode::invalid_argument, "unknown command '%s'%s",
                      printable(argument).c_str(),
                      see_help(argument, command_names(app), "tsq").c_str());
      continue;
    }
    argument = with_two_dashes(*command, argument);
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (is_unbuilt(command->get_name(), name))
      return errorf(ErrorCode::invalid_argument, "%s: %s is not built yet",
                    command->get_name().c_str(), name.c_str());
    if (is_unknown(*command, name)) return unknown_option(*command, argument);
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
