#include "completion.h"

#include <memory>
#include <string_view>

#include "commands.h"
#include "support.h"

namespace tsq::tool {
namespace {

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

// In single quotes, as bash and zsh read them.
std::string shell_quoted(std::string_view text) {
  std::string in_quotes = "'";
  for (const char c : text) in_quotes += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return in_quotes + "'";
}

std::vector<OptionSpec> all_options(const CommandSpec& command) {
  std::vector<OptionSpec> options = command.options;
  options.insert(options.end(), command.log_options.begin(), command.log_options.end());
  return options;
}

std::vector<std::string> names_of_commands(const std::vector<CommandSpec>& commands) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < commands.size(); ++i)
    names.insert(names.end(), commands[i].names.begin(), commands[i].names.end());
  return names;
}

std::vector<std::string> names_of_options(const CommandSpec& command) {
  std::vector<std::string> names;
  for (const OptionSpec& option : all_options(command))
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// What completes a value in bash, where $cur is what there is of it.
std::string bash_value(const OptionSpec& option) {
  if (option.is_file) return "_tsq_files";
  if (!option.choices.empty()) return "_tsq_words " + shell_quoted(join(option.choices, " "));
  return ":";  // anything
}

// The zsh functions or words that complete a value.
std::string zsh_action(const OptionSpec& option) {
  if (option.is_file) return "_files";
  if (!option.choices.empty()) return "(" + join(option.choices, " ") + ")";
  return " ";
}

std::string zsh_escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != special.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_option(const OptionSpec& option) {
  std::string lines;
  const std::string before = option.repeatable         ? "*"
                             : option.names.size() > 1 ? "(" + join(option.names, " ") + ")"
                                                       : "";
  for (const std::string& name : option.names) {
    std::string spec = before + name;
    if (!option.value.empty()) spec += name.starts_with("--") ? "=" : "+";
    spec += "[" + zsh_escaped(option.description, "[]:\\") + "]";
    if (!option.value.empty())
      spec += ":" + zsh_escaped(option.value, ":\\") + ":" + zsh_action(option);
    lines += " \\\n        " + shell_quoted(spec);
  }
  return lines;
}

std::string fish_quoted(std::string_view text) {
  std::string in_quotes = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') in_quotes += '\\';
    in_quotes += c;
  }
  return in_quotes + "'";
}

std::string fish_value(const OptionSpec& option) {
  if (option.is_file) return " -r -F";
  if (!option.choices.empty()) return " -x -a " + fish_quoted(join(option.choices, " "));
  return option.value.empty() ? "" : " -x";
}

int print_completion(const CLI::App& app, const std::string& shell) {
  const auto commands = command_specs(app);
  return print(shell == "bash"  ? bash_completion(commands)
               : shell == "zsh" ? zsh_completion(commands)
                                : fish_completion(commands))
             ? kSuccess
             : kFailure;
}

}  // namespace

std::string bash_completion(const std::vector<CommandSpec>& commands) {
  std::string values, words, arguments;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CommandSpec& command = commands[i];
    for (const OptionSpec& option : all_options(command)) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : command.names)
        for (const std::string& flag : option.names) patterns.push_back(name + ":" + flag);
      values += "    " + join(patterns, "|") + ") " + bash_value(option) + "; return ;;\n";
    }
    words += "    " + join(command.names, "|") +
             ") words=" + shell_quoted(join(names_of_options(command), " ")) + " ;;\n";
    if (!command.arguments.empty())
      arguments += "    " + join(command.names, "|") + ") " + bash_value(command.arguments[0]) +
                   "; return ;;\n";
  }
  std::vector<std::string> first = names_of_commands(commands);
  const auto general = names_of_options(commands[0]);
  first.insert(first.end(), general.begin(), general.end());
  return R"(# bash completion of tsq, made by 'tsq completion bash'.

_tsq_words() {
  local word
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$1" -- "$cur")
}

_tsq_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$cur")
}

_tsq() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= words= i
  COMPREPLY=()
  # bash takes "--name=value" apart into three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]] && ((COMP_CWORD > 2)); then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] && continue
    command=${COMP_WORDS[i]}
    break
  done
  case $command:$prev in
)" + values +
         R"(  esac
  case $command in
    '') words=)" +
         shell_quoted(join(first, " ")) + " ;;\n" + words + R"(  esac
  if [[ -n $command && $cur != -* ]]; then
    case $command in
)" + arguments +
         R"(    esac
  fi
  _tsq_words "$words"
}

complete -F _tsq tsq
)";
}

std::string zsh_completion(const std::vector<CommandSpec>& commands) {
  std::string described, cases;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CommandSpec& command = commands[i];
    for (const std::string& name : command.names)
      described +=
          " \\\n        " + shell_quoted(name + ":" + zsh_escaped(command.description, ":\\"));
    cases += "      (" + join(command.names, "|") + ")\n      _arguments -S";
    for (const OptionSpec& option : all_options(command)) cases += zsh_option(option);
    for (const OptionSpec& argument : command.arguments)
      cases += " \\\n        " + shell_quoted(std::string(argument.repeatable ? "*" : "1") + ":" +
                                              argument.value + ":" + zsh_action(argument));
    cases += "\n      ;;\n";
  }
  std::string general;
  for (const OptionSpec& option : commands[0].options) general += zsh_option(option);
  return R"(#compdef tsq
# zsh completion of tsq, made by 'tsq completion zsh'.

_tsq() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C)" +
         general + R"( \
        '1: :->command' '*:: :->rest'
  case $state in
    (command)
    local -a commands
    commands=()" +
         described + R"()
    _describe command commands
    ;;
    (rest)
    case $words[1] in
)" + cases +
         R"(    esac
    ;;
  esac
}

if [ "$funcstack[1]" = _tsq ]; then
  _tsq "$@"
else
  compdef _tsq tsq
fi
)";
}

std::string fish_completion(const std::vector<CommandSpec>& commands) {
  const auto option_line = [](const OptionSpec& option, const std::string& condition) {
    std::string line = "complete -c tsq -n " + fish_quoted(condition);
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    return line + fish_value(option) + " -d " + fish_quoted(option.description) + "\n";
  };
  std::string text =
      "# fish completion of tsq, made by 'tsq completion fish'.\n\ncomplete -c tsq -f\n";
  for (const OptionSpec& option : commands[0].options)
    text += option_line(option, "__fish_use_subcommand");
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const CommandSpec& command = commands[i];
    for (const std::string& name : command.names)
      text += "complete -c tsq -n __fish_use_subcommand -a " + name + " -d " +
              fish_quoted(command.description) + "\n";
    const std::string seen = "__fish_seen_subcommand_from " + join(command.names, " ");
    for (const OptionSpec& option : all_options(command)) text += option_line(option, seen);
    for (const OptionSpec& argument : command.arguments)
      text += "complete -c tsq -n " + fish_quoted(seen) +
              (argument.is_file ? " -F" : " -a " + fish_quoted(join(argument.choices, " "))) + "\n";
  }
  return text;
}

void add_completion(CLI::App& app, int& exit_code) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a script that lets a shell complete commands and options");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->option_text("bash|zsh|fish");
  command->callback([shell, &app, &exit_code] { exit_code = print_completion(app, *shell); });
}

}  // namespace tsq::tool
