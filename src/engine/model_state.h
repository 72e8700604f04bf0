// What a Model is inside the library.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "arch/graph.h"
#include "format/reader.h"
#include "tsq/model.h"

namespace tsq {

struct Model::State {
  format::OpenedFile opened;  // the graph and the tokenizer borrow from it: declared first
  std::unique_ptr<Graph> graph;
  std::optional<Tokenizer> tokenizer;
  std::string name;
};

}  // namespace tsq
