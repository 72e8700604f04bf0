#include "model_file.h"

#include <fstream>
#include <string_view>

namespace tsq::tool {

namespace fs = std::filesystem;

namespace {

bool starts_with(const fs::path& path, std::string_view magic) {
  std::string start(magic.size(), '\0');
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // a pipe's bytes cannot be read twice
  return std::ifstream(path, std::ios::binary)
             .read(start.data(), static_cast<std::streamsize>(start.size())) &&
         start == magic;
}

}  // namespace

Result<fs::path> model_path(const std::string& given) {
  if (!given.empty()) return fs::path(given);
  std::error_code ignored;
  for (fs::path folder = fs::current_path(ignored); !folder.empty();
       folder = folder.parent_path()) {
    const fs::path candidate = folder / "models" / "fairy-tales.tsq";
    if (fs::is_regular_file(candidate, ignored)) return candidate;
    if (fs::exists(folder / ".git", ignored) || folder == folder.root_path()) break;
  }
  return Error(ErrorCode::invalid_argument, "no model: name one with -m MODEL.tsq");
}

bool is_gguf(const fs::path& path) { return starts_with(path, "GGUF"); }
bool is_tsq(const fs::path& path) { return starts_with(path, {"TSQ", 4}); }

Error with_convert_hint(const Error& error, const fs::path& path) {
  if (!is_gguf(path)) return error;
  return {ErrorCode::unsupported, path.string() + ": a GGUF file; convert it first: tsq convert " +
                                      path.string() + " -o " + path.stem().string() + ".tsq"};
}

}  // namespace tsq::tool
