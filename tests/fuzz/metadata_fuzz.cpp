// Whatever the bytes of a .tsq file's metadata section: the file is refused, or every value can be
// read as every type and the graph makes of it a model or an error. An input is the number of
// entries, a byte, and the section; the rest of the file is that of a tiny model.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "arch/graph.h"
#include "base/buffer.h"
#include "check_tokenizer.h"
#include "format/reader.h"
#include "format_files.h"
#include "input.h"

namespace {

using namespace tsq;
using format::Bytes;
using format::put;
using format::section_at;
using format::section_bytes;

constexpr std::size_t kMetadata = 1, kSections = 7;  // of the section directory
constexpr std::size_t kHeaderBytes = 1024, kDataAlignment = 65536;

std::size_t round_up_to(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

// hidden_size 32, one layer, 6 tokens, and the embedding.
const Bytes& model() {
  static const Bytes file = [] {
    format::FileContents contents;
    contents.header.hidden_size = 32;
    contents.header.num_layers = 1;
    contents.header.vocab_size = 6;
    format::TensorRecord embedding;
    embedding.name = "token_embd.weight";
    embedding.n_dims = 2;
    embedding.dims = {32, 6, 1, 1};
    contents.tensors = {embedding};
    return format::make_file(std::move(contents));
  }();
  return file;
}

// The model with this metadata; the sections behind it move.
Bytes with_metadata(std::string_view section, std::uint8_t n_entries) {
  const Bytes& from = model();
  std::size_t places[kSections];
  std::size_t end = kHeaderBytes;
  for (std::size_t k = 0; k < kSections; ++k) {
    places[k] = round_up_to(end, k + 1 == kSections ? kDataAlignment : 64);
    end = places[k] + (k == kMetadata ? section.size() : section_bytes(from, k));
  }
  Bytes file(end);
  std::memcpy(file.data(), from.data(), kHeaderBytes);
  for (std::size_t k = 0; k < kSections; ++k) {
    const std::size_t entry = 96 + 64 * k;
    put<std::uint64_t>(file, entry + 8, places[k]);
    if (k == kMetadata) {
      put<std::uint64_t>(file, entry + 16, section.size());
      put<std::uint64_t>(file, entry + 24, n_entries);
      std::copy(section.begin(), section.end(), reinterpret_cast<char*>(file.data()) + places[k]);
    } else {
      std::copy_n(from.data() + section_at(from, k), section_bytes(from, k),
                  file.data() + places[k]);
    }
  }
  put<std::uint64_t>(file, 64, file.size());
  return file;
}

void use(const Entry& entry, const Metadata& metadata) {
  const Value* const found = metadata.find(entry.key);
  if (found == nullptr || found->bytes().data() != entry.value.bytes().data()) std::abort();
  fuzz::read_every_byte(entry.value.bytes());
  const auto integer = entry.value.as_i64();
  if (integer && *integer >= 0 && entry.value.as_u64() != static_cast<std::uint64_t>(*integer))
    std::abort();
  const auto integers = entry.value.as_i64s();
  if (integers && integers->size() != entry.value.count()) std::abort();
  const auto strings = entry.value.as_strings();
  if (strings && strings->size() != entry.value.count()) std::abort();
  (void)entry.value.as_f64();
  (void)entry.value.as_f64s();
  (void)entry.value.as_bool();
  (void)entry.value.as_string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const std::uint8_t n_entries = in.byte();
  const Bytes bytes = with_metadata(in.rest(), n_entries);
  const auto file = format::File::parse(bytes.span(), {.check_digests = false});
  if (!file) {
    if (file.error().message().empty()) std::abort();
    return 0;
  }
  if (file->metadata().entries().size() != n_entries) std::abort();
  for (const Entry& entry : file->metadata().entries()) use(entry, file->metadata());
  const auto graph = make_graph(*file);
  if (!graph && graph.error().message().empty()) std::abort();
  return 0;
}
