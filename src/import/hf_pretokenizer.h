// How a tokenizer.json prepares text before its BPE, recognised as one of the ways that tsq has.
#pragma once

#include <string>

#include "base/json.h"

namespace tsq::importer {

struct HfTextRules {
  bool sentencepiece = false;  // spaces as U+2581; else byte-level
  std::string pre;             // of byte-level: a value of tokenizer.ggml.pre
  bool nfc = false;            // of byte-level
  bool space_prefix = false;   // of SentencePiece
  std::string unsupported;     // why tsq has no such rules; empty if it has
};

// By the "normalizer" and the "pre_tokenizer" of the file's root.
HfTextRules read_text_rules(const Json& root);

}  // namespace tsq::importer
