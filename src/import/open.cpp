#include "import/open.h"

#include <system_error>

#include "base/errorf.h"
#include "import/gguf.h"
#include "import/hf_folder.h"
#include "import/other_files.h"
#include "import/tsq_file.h"

namespace tsq::importer {
namespace {

enum class Kind { gguf, tsq, safetensors, folder };

Kind kind_of(const std::filesystem::path& source) {
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) return Kind::folder;
  if (is_tsq(source)) return Kind::tsq;
  const auto map = MappedFile::open(source);
  return map && is_safetensors(map->bytes()) ? Kind::safetensors : Kind::gguf;
}

}  // namespace

Result<OpenedCheckpoint> open(std::span<const std::filesystem::path> sources,
                              const AssumedLayouts& assumed) {
  for (const auto& source : sources) {
    const Kind kind = kind_of(source);
    if (kind == Kind::gguf) continue;  // or another file, which open_gguf() names
    if (sources.size() > 1) {
      return errorf(ErrorCode::invalid_argument,
                    "%zu sources were given, but this is %s, which is a whole model",
                    sources.size(),
                    kind == Kind::folder ? "a folder"
                    : kind == Kind::tsq  ? "a .tsq file"
                                         : "a safetensors file with its folder")
          .at(source.string());
    }
    if (kind == Kind::tsq) return open_tsq(source);
    return kind == Kind::folder ? open_hf_folder(source) : open_safetensors(source);
  }
  return open_gguf(sources, assumed);
}

}  // namespace tsq::importer
