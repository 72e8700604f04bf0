// tsq: runs, converts and examines ternary language models.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "arguments.h"
#include "base/errorf.h"
#include "commands.h"
#include "environment.h"
#include "help.h"
#include "support.h"
#include "version.h"

namespace tsq::tool {
namespace {

// What CLI11 found wrong, in the words and with the exit code of every other error.
int fail_usage(const CLI::App& app, const CLI::ParseError& error) {
  blame_environment({});  // its values have been checked: it is the command line
  const auto used = app.get_subcommands();
  const std::string name = used.empty() ? "" : used[0]->get_name();
  std::string message = lower_first(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string first = app.remaining(true).front();
    if (first.starts_with('-')) return fail(unknown_option(used.empty() ? app : *used[0], first));
    message = "unexpected argument '" + printable(first) + "'";
  }
  return fail(errorf(ErrorCode::invalid_argument, "%s%s; see 'tsq%s%s --help'",
                     name.empty() ? "" : (name + ": ").c_str(), message.c_str(),
                     name.empty() ? "" : " ", name.c_str()));
}

// Adds what the environment gives to the arguments.
Result<void> add_environment(const CommandLine& line, std::vector<std::string>& arguments) {
  std::vector<const CLI::Option*> given;
  for (const GivenOption& option : line.given) given.push_back(option.option);
  if (std::find(given.begin(), given.end(), line.command->get_help_ptr()) != given.end()) return {};
  const auto found = environment_options(*line.command, given);
  if (!found) return found.error();
  for (const std::string& setting : found->settings)
    debug("from the environment: %s", setting.c_str());
  const auto command = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& a) { return !a.starts_with('-'); });
  arguments.insert(command + 1, found->arguments.begin(), found->arguments.end());
  blame_environment(found->settings);
  return {};
}

// "tsq --log-json run" is "tsq run --log-json".
std::vector<std::string> with_log_options_last(std::vector<std::string> arguments) {
  auto end = arguments.begin();
  while (end != arguments.end() && end->starts_with("--log-")) {
    const bool value_follows = *end == "--log-level" && end + 1 != arguments.end();
    end += value_follows ? 2 : 1;
  }
  if (end != arguments.end()) std::rotate(arguments.begin(), end, end + 1);
  return arguments;
}

int run_tool(const std::vector<std::string>& given) {
  const std::vector<std::string> arguments = with_log_options_last(given);
  CLI::App app("Runs, converts and examines language models with ternary weights.", "tsq");
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  app.formatter(make_help_formatter());
  int exit_code = kSuccess;
  add_run(app, exit_code);
  add_convert(app, exit_code);
  add_inspect(app, exit_code);
  add_verify(app, exit_code);
  add_perplexity(app, exit_code);
  add_bench(app, exit_code);
  add_completion(app, exit_code);
  add_man(app, exit_code);
  app.footer(
      "'tsq COMMAND --help' lists the options of a command, each with the environment variable "
      "that gives its value where the command line does not. Exit codes: 0 success, 1 failure, 2 "
      "usage, 3 damaged file, 4 unsupported file, 130 interrupted.");

  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add_log_options(*command);

  if (arguments.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kUsage;
  }
  const CommandLine line = read_command_line(app, arguments);
  set_log_as_asked(line);
  auto prepared = prepare_arguments(app, arguments);
  if (!prepared) return fail(prepared.error());
  if (line.command != nullptr) {
    const auto added = add_environment(line, *prepared);
    if (!added) return fail(added.error());
  }
  std::vector<std::string> reversed(prepared->rbegin(), prepared->rend());  // CLI11's order
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    const auto used = app.get_subcommands();
    return print(used.empty() ? app.help() : used[0]->help("tsq")) ? kSuccess : kFailure;
  } catch (const CLI::CallForVersion& version) {
    return print(std::string(version.what()) + "\n") ? kSuccess : kFailure;
  } catch (const CLI::ParseError& error) {
    return fail_usage(app, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace tsq::tool

int main(int argc, char** argv) {
  // glibc would raise it with each large block that is freed, and keep later ones of that size.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  tsq::tool::reserve_standard_streams();
  tsq::tool::clean_up_on_signals();
  try {
    return tsq::tool::run_tool({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    return tsq::tool::fail({tsq::ErrorCode::out_of_memory, "out of memory"});
  } catch (const std::exception& error) {  // a path or a locale that the standard library dislikes
    return tsq::tool::fail({tsq::ErrorCode::io, error.what()});
  }
}
