// A Tokenizer from the section of a file.
#pragma once

#include "format/tokenizer_section.h"
#include "tsq/tokenizer.h"

namespace tsq {

// The bytes that the view reads must outlive the tokenizer. Errors: unsupported where PCRE2 cannot
// compile the split pattern (it was built without Unicode); out_of_memory.
Result<Tokenizer> make_tokenizer(const format::TokenizerView& view);

}  // namespace tsq
