#include "inspect.h"

#include <memory>

#include "commands.h"
#include "import/open.h"
#include "model_file.h"
#include "support.h"

namespace tsq::tool {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

int show(const std::string& text) { return print(text) ? kSuccess : kFailure; }

// What convert reads, other than a .tsq file.
int inspect_source(const std::filesystem::path& path, bool json) {
  const auto opened = importer::open({&path, 1});
  if (!opened) return fail(opened.error());
  const bool gguf = is_gguf(path);
  return show(json ? inspect_json(opened->checkpoint, gguf ? "gguf" : "hugging-face")
                   : inspect_text(opened->checkpoint, gguf ? "GGUF" : "Hugging Face folder"));
}

int inspect(const Options& options) {
  const std::filesystem::path path = options.path;
  std::error_code ignored;
  if (is_gguf(path) || std::filesystem::is_directory(path, ignored) ||
      path.extension() == ".safetensors") {
    return inspect_source(path, options.json);
  }
  const auto opened = format::open(path);
  if (!opened) return fail(opened.error());
  return show(options.json ? inspect_json(opened->file) : inspect_text(opened->file));
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show a model file: header, summary, metadata, tensors");
  command
      ->add_option("MODEL", options->path,
                   "a .tsq or GGUF file, or a folder with config.json and safetensors")
      ->required();
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace tsq::tool
