#include "big_file.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/metadata.h"
#include "format/writer.h"

namespace tsq::format {
namespace {

constexpr std::uint64_t kSide = 4096;

// 256 bytes; 16,000 pairs of them; 16,896 pairs of those; 16,000 pairs of the last.
Vocabulary big_vocabulary() {
  Vocabulary vocabulary;
  const auto add = [&](std::uint32_t left, std::uint32_t right) {
    const auto result = static_cast<std::uint32_t>(vocabulary.tokens.size());
    vocabulary.tokens.push_back(vocabulary.tokens[left] + vocabulary.tokens[right]);
    vocabulary.merges.push_back({left, right, result});
  };
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  for (std::uint32_t i = 0; i < 16000; ++i) add(i / 256, i % 256);
  for (std::uint32_t i = 0; i < 16896; ++i) add(256 + i % 16000, 256 + (7 * i + i / 16000) % 16000);
  for (std::uint32_t i = 0; i < 16000; ++i) add(16256 + i, 16256 + (11 * i + 1) % 16896);
  vocabulary.types.assign(vocabulary.tokens.size(), TokenType::normal);
  vocabulary.eos = 0;
  return vocabulary;
}

Result<FileContents> big_contents(std::uint64_t bytes) {
  const Vocabulary vocabulary = big_vocabulary();
  FileContents contents;
  contents.header.hidden_size = kSide;
  contents.header.vocab_size = static_cast<std::uint32_t>(vocabulary.tokens.size());
  contents.header.model_name = "big";
  ByteWriter metadata;
  write_entry(metadata, "general.architecture", "none");
  contents.n_metadata = 1;
  contents.metadata = metadata.take();
  contents.rotations = {
      {.block = 1024, .width = kSide, .signs = std::vector<std::uint32_t>(kSide / 32, 0x12345678)}};
  auto section = build_tokenizer_section(vocabulary);
  if (!section) return section.error();
  contents.tokenizer = std::move(*section);

  TensorRecord tensor;
  tensor.encoding = Encoding::t2;
  tensor.n_dims = 2;
  tensor.dims = {kSide, kSide, 1, 1};
  tensor.scale_kind = ScaleKind::per_group;
  tensor.activation_quant = ActivationQuant::per_group;
  tensor.input_rotation = 0;
  const std::uint64_t n = 1 + bytes / *body_bytes(tensor.shape());
  for (std::uint64_t i = 0; i < n; ++i) {
    tensor.name = "blk." + std::to_string(i) + ".ffn_up.weight";
    contents.tensors.push_back(tensor);
  }
  contents.header.num_layers = static_cast<std::uint32_t>(n);
  contents.rotation_probes = {{.value = 0}};  // every scale is 0
  return contents;
}

}  // namespace

Result<void> write_big_file(const std::filesystem::path& path, std::uint64_t bytes) {
  auto contents = big_contents(bytes);
  if (!contents) return contents.error();
  auto writer = Writer::create(path, std::move(*contents));
  if (!writer) return writer.error();
  for (const TensorRecord& tensor : writer->contents().tensors) {
    // Zeros are codes of -1 with a scale of 0.
    if (auto done = writer->append(std::vector<std::byte>(tensor.body_bytes)); !done) return done;
    if (auto done = writer->end_tensor({}, 0); !done) return done;
  }
  if (auto done = writer->seal({.state = TokenProbeState::no_graph}); !done) return done;
  return writer->commit();
}

Result<OpenedModel> open_model(const std::filesystem::path& path) {
  auto opened = open(path);
  if (!opened) return opened.error();
  auto tokenizer =
      TokenizerView::parse(opened->file.tokenizer_section(), opened->file.header().vocab_size);
  if (!tokenizer) return tokenizer.error();
  return OpenedModel{std::move(*opened), std::move(*tokenizer)};
}

std::uint64_t private_dirty_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Private_Dirty:"))
      return 1024 * std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
  }
  std::abort();  // this kernel does not say
}

}  // namespace tsq::format
