// The keys `tokenizer.ggml.*` as a format::Vocabulary.
#pragma once

#include "import/checkpoint.h"

namespace tsq::importer {

// Fills checkpoint.vocabulary, or no_vocabulary with the reason where the file has no tokenizer or
// one that tsq does not run; dropped_merges; warnings. Damaged: arrays of wrong type or length,
// ids of tokens that do not exist.
Result<void> read_vocabulary(Checkpoint& checkpoint);

}  // namespace tsq::importer
