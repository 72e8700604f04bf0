// Writes a .tsq file of about GIB gibibytes for open_tsq, with a made-up vocabulary or that of a
// GGUF file: make_big_tsq OUT.tsq [GIB [VOCABULARY.gguf]].
#include <cstdio>
#include <cstdlib>
#include <string>

#include "big_file.h"
#include "import/gguf.h"

namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "make_big_tsq: %s\n", message.c_str());
  return 1;
}

tsq::Result<tsq::format::Vocabulary> vocabulary_of(const std::filesystem::path& path) {
  const auto opened = tsq::importer::open_gguf({&path, 1});
  if (!opened) return opened.error();
  if (opened->checkpoint.vocabulary) return *opened->checkpoint.vocabulary;
  return tsq::Error(tsq::ErrorCode::unsupported, opened->checkpoint.no_vocabulary);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fputs("usage: make_big_tsq OUT.tsq [GIB [VOCABULARY.gguf]]\n", stderr);
    return 2;
  }
  const double gib = argc > 2 ? std::atof(argv[2]) : 1;
  const auto vocabulary = argc > 3 ? vocabulary_of(argv[3]) : tsq::test::big_vocabulary();
  if (!vocabulary) return fail(vocabulary.error().message());
  const auto written =
      tsq::test::write_big_file(argv[1], static_cast<std::uint64_t>(gib * (1 << 30)), *vocabulary);
  return written ? 0 : fail(written.error().message());
}
