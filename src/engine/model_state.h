// What a Model is inside the library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "arch/graph.h"
#include "engine/repack.h"
#include "format/reader.h"
#include "tsq/model.h"

namespace tsq {

struct Model::State {
  std::uint64_t serial;       // another one for every model that this process opens
  format::OpenedFile opened;  // the graph and the tokenizer borrow from it: declared first
  RepackedWeights repacked;   // as does the graph from these
  std::unique_ptr<Graph> graph;
  std::optional<Tokenizer> tokenizer;
  std::string name;
};

}  // namespace tsq
