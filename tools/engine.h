// The options of every command that runs a model, and what they open.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsq/model.h"
#include "tsq/session.h"
#include "tsq/tokenizer.h"

namespace tsq::tool {

struct EngineOptions {
  std::string model;  // empty: the model of this repository
  std::string activations = "int8";
  std::string repack = "none";
  SessionOptions session;
  std::optional<int> hadamard_order;  // instead of the file's
};

// Declares --repack.
void add_repack_option(CLI::App& command, std::string& repack);
// Declares -m, -t, --activations and --repack. The context differs by command.
void add_engine_options(CLI::App& command, EngineOptions& options);

// Opens a file, as --repack and the other options say, showing progress.
Result<Model> open_model(const std::filesystem::path& path, const EngineOptions& options);
// A model with a tokenizer, which every command that reads text needs.
Result<Model> load_model(const EngineOptions& options);
// Prints what will run and how, and what memory it will take, before it is taken. The error of a
// context that does not fit says which -c would.
Result<void> describe(const Model& model, const EngineOptions& options);
SessionOptions session_options(const EngineOptions& options);
// Warns where fewer threads run than were asked for, and of a context beyond the model's. A context
// that does not fit is refused with one that does.
Result<Session> create_session(const Model& model, const EngineOptions& options);

// The tokens of a text that is to be continued: begun as the model wants it, and not ended.
Result<std::vector<Token>> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                       bool parse_special = false);

}  // namespace tsq::tool
