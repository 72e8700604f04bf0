#include "import/shard_index.h"

#include <algorithm>

#include "base/errorf.h"

namespace tsq::importer {
namespace {

bool stays_in_folder(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of("/\\") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text) {
  auto document = JsonDocument::parse(text, {.values = 1u << 18});
  if (!document) return document.error();
  const auto map = document->root().find("weight_map");
  if (!map || map->kind() != JsonKind::object) {
    return errorf(ErrorCode::damaged, "'weight_map' is %s, expected an object of file names",
                  map ? json_text(*map).c_str() : "missing");
  }
  std::vector<std::string_view> files;
  for (const auto& [tensor, value] : *map) {
    const auto file = value.as_string();
    if (!file || !stays_in_folder(*file)) {
      return errorf(ErrorCode::damaged,
                    "'weight_map' has %s for '%s', expected the name of a .safetensors file in "
                    "the same folder",
                    json_text(value).c_str(), printable(tensor).c_str());
    }
    files.push_back(*file);
  }
  if (files.empty())
    return errorf(ErrorCode::damaged, "'weight_map' is empty, a model has tensors");
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());

  ShardIndex index{std::move(*document), {files.begin(), files.end()}, {}};
  index.places.reserve(map->size());
  for (const auto& [tensor, value] : *map) {
    const auto found = std::lower_bound(files.begin(), files.end(), *value.as_string());
    index.places.push_back({tensor, static_cast<std::size_t>(found - files.begin())});
  }
  std::sort(index.places.begin(), index.places.end(),
            [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
  return index;
}

}  // namespace tsq::importer
