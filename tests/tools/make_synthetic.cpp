// Writes a model of a real one's sizes with random ternary weights, for benches:
//   make_synthetic OUT.tsq --shape bonsai-8b [--encoding t1|t2|s34] [--seed N]
//   make_synthetic --size --shape bonsai2-27b ...
// --size writes nothing but what the file would take. --layers, --vocab and --rotation (a block of
// 64 to 4096, 0: none) replace the shape's own.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "format/tokenizer_section.h"
#include "synthetic_model.h"

namespace {

using tsq::format::Encoding;

struct Options {
  std::optional<tsq::test::SyntheticShape> shape;
  tsq::test::SyntheticOptions write;
  std::optional<std::uint32_t> layers, vocab, rotation;
};

template <class T>
bool parse_number(std::string_view text, T low, T high, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= low &&
         number <= high;
}

bool parse_number(std::string_view text, std::uint32_t low, std::uint32_t high,
                  std::optional<std::uint32_t>& number) {
  return parse_number(text, low, high, number.emplace());
}

bool set(Options& options, std::string_view name, std::string_view value) {
  if (name == "--shape") {
    for (const auto& shape : tsq::test::synthetic_shapes())
      if (value == shape.name) options.shape = shape;
    return options.shape.has_value();
  }
  if (name == "--encoding") {
    for (const Encoding encoding : {Encoding::t1, Encoding::t2, Encoding::s34}) {
      if (value != tsq::format::encoding_name(encoding)) continue;
      options.write.encoding = encoding;
      return true;
    }
    return false;
  }
  if (name == "--seed")
    return parse_number(value, std::uint64_t{0}, UINT64_MAX, options.write.seed);
  if (name == "--layers") return parse_number(value, 1, 4096, options.layers);
  if (name == "--vocab") return parse_number(value, 256, tsq::format::kMaxTokens, options.vocab);
  if (name == "--rotation")
    return parse_number(value, 0, 4096, options.rotation) &&
           (*options.rotation == 0 ||
            (*options.rotation >= 64 && (*options.rotation & (*options.rotation - 1)) == 0));
  return false;
}

int usage() {
  std::fputs(
      "usage: make_synthetic OUT.tsq --shape NAME [--encoding t1|t2|s34] [--seed N]\n"
      "                      [--layers N] [--vocab N] [--rotation BLOCK]\n"
      "       make_synthetic --size --shape NAME ...\nshapes:",
      stderr);
  for (const auto& shape : tsq::test::synthetic_shapes()) std::fprintf(stderr, " %s", shape.name);
  std::fputc('\n', stderr);
  return 2;
}

int print_size(const Options& options) {
  const auto size = tsq::test::synthetic_size(*options.shape, options.write);
  if (!size) {
    std::fprintf(stderr, "make_synthetic: %s\n", size.error().message().c_str());
    return 1;
  }
  const double bits = 8.0 * static_cast<double>(size->ternary_bytes);
  std::printf("%" PRIu64 " bytes, %" PRIu64 " ternary weights of %.4f bits\n", size->file_bytes,
              size->ternary_weights, bits / static_cast<double>(size->ternary_weights));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc % 2 != 0) return usage();
  Options options;
  for (int i = 2; i < argc; i += 2)
    if (!set(options, argv[i], argv[i + 1])) return usage();
  if (!options.shape) return usage();
  options.shape->layers = options.layers.value_or(options.shape->layers);
  options.shape->vocab = options.vocab.value_or(options.shape->vocab);
  options.shape->rotation = options.rotation.value_or(options.shape->rotation);
  if (std::string_view(argv[1]) == "--size") return print_size(options);
  const auto written = tsq::test::write_synthetic(argv[1], *options.shape, options.write);
  if (written) return 0;
  std::fprintf(stderr, "make_synthetic: %s\n", written.error().message().c_str());
  return 1;
}
