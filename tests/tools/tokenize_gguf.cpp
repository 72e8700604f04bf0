// The tokens of texts by the vocabulary of a GGUF file: tokenize_gguf MODEL.gguf < TEXTS.
// Texts are separated by a line "__ggml_vocab_test__", as in the vocabulary tests of llama.cpp; one
// line of ids a text, without BOS and EOS.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "format/tokenizer_section.h"
#include "import/gguf.h"
#include "tokenizer/make.h"

namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "tokenize_gguf: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("usage: tokenize_gguf MODEL.gguf < TEXTS");
  const std::filesystem::path paths[] = {argv[1]};
  const auto opened = tsq::importer::open_gguf(paths);
  if (!opened) return fail(opened.error().message());
  const auto& vocabulary = opened->checkpoint.vocabulary;
  if (!vocabulary) return fail(opened->checkpoint.no_vocabulary);
  const auto section = tsq::format::build_tokenizer_section(*vocabulary);
  if (!section) return fail(section.error().message());
  const auto view = tsq::format::TokenizerView::parse(
      *section, static_cast<std::uint32_t>(vocabulary->tokens.size()));
  if (!view) return fail(view.error().message());
  const auto tokenizer = tsq::make_tokenizer(*view);
  if (!tokenizer) return fail(tokenizer.error().message());

  const std::string all(std::istreambuf_iterator<char>(std::cin), {});
  const std::string separator = "\n__ggml_vocab_test__\n";
  for (std::size_t start = 0; start <= all.size();) {
    const std::size_t end = std::min(all.find(separator, start), all.size());
    const auto tokens = tokenizer->encode(all.substr(start, end - start), {.add_special = false});
    if (!tokens) return fail(tokens.error().message());
    for (const tsq::Token token : *tokens) std::printf(" %d", token);
    std::puts("");
    start = end + separator.size();
  }
}
