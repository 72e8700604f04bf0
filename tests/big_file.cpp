#include "big_file.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/metadata.h"
#include "format/writer.h"
#include "probe_places.h"

namespace tsq::test {
namespace {

using format::Encoding;
using format::TensorRecord;

constexpr std::uint32_t kHidden = 4096, kFfn = 8192, kHeads = 32;
constexpr std::uint32_t kHiddenRotation = 0, kFfnRotation = 1;

TensorRecord vector(std::string name, std::uint64_t size) {
  TensorRecord tensor;
  tensor.name = std::move(name);
  tensor.n_dims = 1;
  tensor.dims[0] = size;
  return tensor;
}

TensorRecord matrix(std::string name, std::uint64_t rows, std::uint64_t cols) {
  TensorRecord tensor = vector(std::move(name), cols);
  tensor.encoding = Encoding::t2;
  tensor.n_dims = 2;
  tensor.dims[1] = rows;
  tensor.scale_kind = format::ScaleKind::per_group;
  tensor.activation_quant = format::ActivationQuant::per_group;
  tensor.input_rotation = cols == kHidden ? kHiddenRotation : kFfnRotation;
  return tensor;
}

void add_layer(std::vector<TensorRecord>& tensors, std::uint64_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  tensors.push_back(vector(prefix + "attn_norm.weight", kHidden));
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
    tensors.push_back(matrix(prefix + name + ".weight", kHidden, kHidden));
  tensors.push_back(vector(prefix + "ffn_norm.weight", kHidden));
  for (const char* name : {"ffn_gate", "ffn_up"})
    tensors.push_back(matrix(prefix + name + ".weight", kFfn, kHidden));
  tensors.push_back(matrix(prefix + "ffn_down.weight", kHidden, kFfn));
}

std::uint64_t data_bytes(std::span<const TensorRecord> tensors) {
  std::uint64_t sum = 0;
  for (const TensorRecord& tensor : tensors) sum += *format::body_bytes(tensor.shape());
  return sum;
}

void write_metadata(format::FileContents& contents) {
  ByteWriter out;
  const auto write = [&](const char* key, const auto& value) {
    write_entry(out, key, value);
    ++contents.n_metadata;
  };
  write("general.architecture", "llama");
  write("llama.block_count", contents.header.num_layers);
  write("llama.embedding_length", kHidden);
  write("llama.feed_forward_length", kFfn);
  write("llama.context_length", std::uint32_t{2048});
  write("llama.attention.head_count", kHeads);
  write("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  contents.metadata = out.take();
}

Result<format::FileContents> big_contents(std::uint64_t bytes,
                                          const format::Vocabulary& vocabulary) {
  format::FileContents contents;
  contents.header.hidden_size = kHidden;
  contents.header.vocab_size = static_cast<std::uint32_t>(vocabulary.tokens.size());
  contents.header.model_name = "big";
  std::vector<TensorRecord>& tensors = contents.tensors;
  tensors.push_back(matrix("token_embd.weight", vocabulary.tokens.size(), kHidden));
  tensors.push_back(vector("output_norm.weight", kHidden));
  do {
    add_layer(tensors, contents.header.num_layers++);
  } while (data_bytes(tensors) < bytes);
  contents.rotations = {{.block = 1024,
                         .width = kHidden,
                         .signs = std::vector<std::uint32_t>(kHidden / 32, 0x12345678)},
                        {.block = 1024, .width = kFfn, .signs = {}}};
  // Every weight is 0, before the rotation too.
  contents.rotation_probes = probe_places(tensors, 2);
  write_metadata(contents);
  auto section = format::build_tokenizer_section(vocabulary);
  if (!section) return section.error();
  contents.tokenizer = std::move(*section);
  return contents;
}

}  // namespace

// 256 bytes; 16,000 pairs of them; 16,896 pairs of those; 16,000 pairs of the last.
format::Vocabulary big_vocabulary() {
  format::Vocabulary vocabulary;
  const auto add = [&](std::uint32_t left, std::uint32_t right) {
    const auto result = static_cast<std::uint32_t>(vocabulary.tokens.size());
    vocabulary.tokens.push_back(vocabulary.tokens[left] + vocabulary.tokens[right]);
    vocabulary.merges.push_back({left, right, result});
  };
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  for (std::uint32_t i = 0; i < 16000; ++i) add(i / 256, i % 256);
  for (std::uint32_t i = 0; i < 16896; ++i) add(256 + i % 16000, 256 + (7 * i + i / 16000) % 16000);
  for (std::uint32_t i = 0; i < 16000; ++i) add(16256 + i, 16256 + (11 * i + 1) % 16896);
  vocabulary.types.assign(vocabulary.tokens.size(), format::TokenType::normal);
  vocabulary.eos = 0;
  return vocabulary;
}

Result<void> write_big_file(const std::filesystem::path& path, std::uint64_t bytes,
                            const format::Vocabulary& vocabulary) {
  auto contents = big_contents(bytes, vocabulary);
  if (!contents) return contents.error();
  auto writer = format::Writer::create(path, std::move(*contents));
  if (!writer) return writer.error();
  for (const TensorRecord& tensor : writer->contents().tensors) {
    // Zeros are codes of -1 with a scale of 0.
    if (auto done = writer->append(std::vector<std::byte>(tensor.body_bytes)); !done) return done;
    if (auto done = writer->end_tensor({}, 0); !done) return done;
  }
  if (auto done = writer->seal({.state = format::TokenProbeState::not_asked}); !done) return done;
  return writer->commit();
}

std::uint64_t private_dirty_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Private_Dirty:"))
      return 1024 * std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
  }
  std::abort();  // this kernel does not say
}

}  // namespace tsq::test
