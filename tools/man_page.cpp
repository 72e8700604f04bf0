// The manual page, from the definitions of commands and options.
#include <string>
#include <string_view>

#include "command_spec.h"
#include "commands.h"
#include "support.h"
#include "version.h"

namespace tsq::tool {
namespace {

// Text that roff shows as it is. `dashes`: as those of options, which may be copied and typed.
std::string roff(std::string_view text, bool dashes = false) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-' && dashes)
      escaped += "\\-";
    else
      escaped += c;
  }
  // A line must not begin like a request.
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string entry(const OptionSpec& option) {
  std::string head, text = ".TP\n";
  for (const std::string& name : option.names)
    head += (head.empty() ? "" : ", ") + ("\\fB" + roff(name, true) + "\\fR");
  if (!option.value.empty())
    head += (head.empty() ? "" : " ") + ("\\fI" + roff(option.value) + "\\fR");
  text += head + "\n" + roff(option.description);
  if (!option.default_text.empty()) text += " [" + roff(option.default_text) + "]";
  if (!option.variable.empty()) text += " (" + option.variable + ")";
  return text + "\n";
}

std::string command_section(const CommandSpec& command) {
  std::string text = ".SS \"tsq " + command.name() + " " + command.usage + "\"\n";
  text += roff(command.description) + ".\n";
  for (std::size_t i = 1; i < command.names.size(); ++i)
    text += "Also called \\fB" + command.names[i] + "\\fR.\n";
  for (const OptionSpec& argument : command.arguments) text += entry(argument);
  for (const OptionSpec& option : command.options)
    if (option.names.back() != "--help") text += entry(option);
  return text;
}

std::string man_page(const CLI::App& app) {
  const auto commands = command_specs(app);
  std::string text =
      ".TH TSQ 1 \"\" \"tsq " + std::string(kVersion) + "\" \"User Commands\"\n.nh\n.ad l\n";
  text += R"(.SH NAME
tsq \- run, convert and examine language models with ternary weights
.SH SYNOPSIS
.B tsq
.I COMMAND
.RI [ OPTIONS ]
.br
.B tsq \-\-version
.SH DESCRIPTION
Runs large language models whose weights are \-1, 0 and +1, stored in 1.375 to 2.25 bits each, from
files that are mapped and run as they lie on disk.
Results go to standard output, all else to standard error.
.SH COMMANDS
)";
  for (std::size_t i = 1; i < commands.size(); ++i) text += command_section(commands[i]);
  text += ".SH \"OPTIONS OF EVERY COMMAND\"\n";
  for (const OptionSpec& option : commands[1].log_options) text += entry(option);
  for (const OptionSpec& option : commands[1].options)
    if (option.names.back() == "--help") text += entry(option);
  text += R"(.SH ENVIRONMENT
The variable that stands in parentheses behind an option gives it its value where the command line
does not: TSQ_ and the first long name in capitals.
A flag takes 1, true, yes or on, or 0, false, no or off; a repeatable option takes one value; an
empty variable counts as not set.
.TP
.B TSQ_ISA
The level of CPU instructions to use, such as scalar or avx2, instead of the best that there is.
.TP
.B NO_COLOR
If it is set, and not empty, there are no colours and no progress bars.
.SH "EXIT STATUS"
0 success, 1 failure, 2 usage, 3 damaged file, 4 unsupported file, 130 interrupted.
.SH EXAMPLES
.TP
.B tsq convert model.gguf \-o model.tsq
makes a .tsq file of a GGUF file, without losing a value.
.TP
.B tsq run \-m model.tsq \-p \(dqOnce upon a time\(dq
goes on from a text; without \fB\-p\fR, on a terminal, it is a conversation.
.TP
.B tsq verify model.tsq
makes every check that there is.
)";
  return text;
}

}  // namespace

void add_man(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page, for man -l");
  command->callback([&app, &exit_code] { exit_code = print(man_page(app)) ? kSuccess : kFailure; });
}

}  // namespace tsq::tool
