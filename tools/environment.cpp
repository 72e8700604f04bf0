#include "environment.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/errorf.h"
#include "support.h"

namespace tsq::tool {
namespace {

std::string setting(const std::string& variable, const std::string& value) {
  return variable + "='" + printable(value) + "'";
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// What CLI11 will say to the value, said now: later nobody knows any more where it came from.
Result<void> check_value(CLI::Option& option, const std::string& variable,
                         const std::string& value) {
  try {
    option.add_result(value);
    option.run_callback();
    option.clear();
    return {};
  } catch (const CLI::ParseError& error) {
    option.clear();
    return errorf(ErrorCode::invalid_argument, "%s: %s", setting(variable, value).c_str(),
                  lower_first(error.what()).c_str());
  }
}

// Empty for a flag that is off.
Result<std::string> argument_for(CLI::Option& option, const std::string& variable,
                                 const std::string& value) {
  const std::string name = "--" + option.get_lnames()[0];
  if (takes_value(option)) {
    if (const auto checked = check_value(option, variable, value); !checked) return checked.error();
    return name + "=" + value;
  }
  const auto flag = parse_flag(value);
  if (!flag)
    return errorf(ErrorCode::invalid_argument,
                  "%s: expected 1, true, yes or on, or 0, false, no or off",
                  setting(variable, value).c_str());
  if (*flag) return name;
  return option.get_fnames().empty() ? "" : name + "=false";  // off is as good as not given
}

}  // namespace

std::optional<bool> parse_flag(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::string environment_name(const CLI::Option& option) {
  if (option.get_lnames().empty() || option.get_group().empty() || option.check_lname("help") ||
      option.check_lname("version"))
    return {};
  std::string name = "TSQ_" + option.get_lnames()[0];
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Result<EnvironmentOptions> environment_options(CLI::App& command,
                                               const std::vector<const CLI::Option*>& given) {
  const auto is_given = [&](const CLI::Option* option) {
    return std::find(given.begin(), given.end(), option) != given.end();
  };
  EnvironmentOptions found;
  std::vector<const CLI::Option*> used;
  for (CLI::Option* option : command.get_options(std::function<bool(CLI::Option*)>())) {
    const std::string variable = environment_name(*option);
    const char* const value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    const auto excludes = option->get_excludes();
    if (value == nullptr || *value == '\0' || is_given(option) ||
        std::any_of(excludes.begin(), excludes.end(), is_given))
      continue;
    auto argument = argument_for(*option, variable, value);
    if (!argument) return argument.error();
    if (argument->empty()) continue;
    for (const CLI::Option* other : used)
      if (std::find(excludes.begin(), excludes.end(), other) != excludes.end())
        return errorf(ErrorCode::invalid_argument,
                      "%s and %s: the environment sets both, expected one of them",
                      environment_name(*other).c_str(), variable.c_str());
    used.push_back(option);
    found.settings.push_back(setting(variable, value));
    found.arguments.push_back(std::move(*argument));
  }
  return found;
}

}  // namespace tsq::tool
