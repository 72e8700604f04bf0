// What --help looks like.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace tsq::tool {

// The text broken at spaces into lines of at most `width` bytes where its words allow that.
std::string wrap(std::string_view text, std::size_t width);

// CLI11's formatter, with each option's environment variable, in lines that fit the terminal.
std::shared_ptr<CLI::Formatter> make_help_formatter();
// Columns of the lines of help: the terminal's, at most 100.
std::size_t help_columns();

}  // namespace tsq::tool
