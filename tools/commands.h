// The commands: each declares its options to CLI11 and leaves its exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace tsq::tool {

void add_run(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);

}  // namespace tsq::tool
