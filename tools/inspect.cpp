#include "inspect.h"

#include <memory>

#include "commands.h"
#include "model_file.h"
#include "support.h"

namespace tsq::tool {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

template <class Held>
int show(const Held& held, bool json) {
  return print(json ? inspect_json(held) : inspect_text(held)) ? kSuccess : kFailure;
}

int inspect(const Options& options) {
  const std::filesystem::path path = options.path;
  if (is_gguf(path)) {
    const auto opened = importer::open_gguf({&path, 1});
    return opened ? show(opened->checkpoint, options.json) : fail(opened.error());
  }
  const auto opened = format::open(path);
  return opened ? show(opened->file, options.json) : fail(opened.error());
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show a model file: header, summary, metadata, tensors");
  command->add_option("MODEL", options->path, "a .tsq or GGUF file")->required();
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace tsq::tool
