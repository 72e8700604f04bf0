// model.safetensors.index.json: which tensor lies in which file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tsq::importer {

struct ShardIndex {
  struct Place {
    std::string_view tensor;
    std::size_t file;  // of files
  };
  JsonDocument document;           // holds the names that are not views of the text
  std::vector<std::string> files;  // plain names, ascending, each once
  std::vector<Place> places;       // ascending by tensor
};

// damaged: no map of names to file names; a file name that could leave the folder.
Result<ShardIndex> parse_shard_index(std::string_view text);

}  // namespace tsq::importer
