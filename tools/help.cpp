#include "help.h"

#include <algorithm>
#include <sstream>

#include "environment.h"
#include "support.h"

namespace tsq::tool {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t columns) {
    // Of a narrow terminal the descriptions get the whole width, below the names.
    column_width(columns < 72 ? 6 : 32);
    text_width_ = columns - std::min(columns, get_column_width());
    columns_ = columns;
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string variable = environment_name(*option);
    const std::string text =
        option->get_description() + (variable.empty() ? "" : " (" + variable + ")");
    return wrap(text, text_width_);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             wrap(command->get_description(), text_width_), get_column_width());
    return out.str();
  }

  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : wrap(app->get_footer(), columns_) + "\n";
  }

  std::string make_description(const CLI::App* app) const override {
    return wrap(app->get_description(), columns_) + "\n";
  }

  // CLI11 puts two blank lines between groups.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(Formatter::make_help(app, name, mode), "\n\n\n", "\n\n");
  }

 private:
  std::size_t text_width_, columns_;
};

}  // namespace

std::string wrap(std::string_view text, std::size_t width) {
  std::string wrapped;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find_first_of(" \n"));
    const std::string_view word = text.substr(0, end);
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped += '\n';
      column = 0;
    } else if (column > 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      wrapped += '\n';
      column = 0;
    }
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return wrapped;
}

std::size_t help_columns() {
  return is_terminal(stdout) ? std::min<std::size_t>(terminal_columns(stdout), 100) : 100;
}

std::shared_ptr<CLI::Formatter> make_help_formatter() {
  return std::make_shared<HelpFormatter>(help_columns());
}

}  // namespace tsq::tool
