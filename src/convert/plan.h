// What the .tsq file of a checkpoint will hold, before any tensor is written.
#pragma once

#include <string>
#include <vector>

#include "convert/convert.h"
#include "format/writer.h"
#include "import/checkpoint.h"

namespace tsq::convert {

struct Plan {
  format::FileContents contents;
  std::vector<Fate> fates;              // of each tensor
  std::vector<std::string> beyond_f16;  // as in the summary
};

// contents.tensors[i] is the record of checkpoint.tensors[i]. unsupported: an architecture whose
// tensors have to be reordered, which tsq does not do; a vocabulary that the tokenizer section
// cannot hold (two tokens of the same bytes). damaged: keys that a model must have are missing or
// contradict its tensors.
Result<Plan> plan(const importer::Checkpoint& checkpoint, TernaryEncoding ternary,
                  DenseEncoding dense);

}  // namespace tsq::convert
