// The vocabularies of the tokenizer tests, and a Tokenizer over one of them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "format/tokenizer_section.h"
#include "tsq/tokenizer.h"

namespace tsq {

// A file of tests/data/tokenizer/.
nlohmann::json read_json(const char* name);

// data/tokenizer/vocabulary.json.
format::Vocabulary trained_vocabulary(format::PreTokenizer pre = format::PreTokenizer::gpt2);

// data/tokenizer/sentencepiece.json.
format::Vocabulary sentencepiece_vocabulary(bool space_prefix);

// One token a byte, ids 0 to 255, then these, and no merges.
format::Vocabulary byte_vocabulary(
    const std::vector<std::pair<std::string, format::TokenType>>& more = {});

// Owns the bytes that its tokenizer and view read.
struct OpenedTokenizer {
  explicit OpenedTokenizer(const format::Vocabulary& vocabulary);
  std::vector<std::byte> section;
  format::TokenizerView view;
  Tokenizer tokenizer;
};

// The value or, where there is none, a test failure with its error and an empty value.
std::vector<Token> encode(const Tokenizer& tokenizer, std::string_view text,
                          const EncodeOptions& options = {});

// Texts that cost a careless split pattern or merge loop quadratic time, or a stack frame a letter.
std::vector<std::string> long_texts();

// Runs it on a thread of 256 KiB of stack, and expects it to take no time that is quadratic in the
// length of long_texts().
void run_on_a_small_stack(void (*run)());

}  // namespace tsq
