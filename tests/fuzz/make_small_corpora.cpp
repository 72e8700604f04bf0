// Writes the first inputs of five targets: make_small_corpora FOLDER, into a folder each. What lies
// in corpus/ is what fuzzing made of them, minimised.
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/metadata.h"
#include "format/tokenizer_section.h"
#include "format_files.h"

namespace {

using namespace tsq;
using format::TokenType;
using format::Vocabulary;

std::filesystem::path root;

void write(const char* target, const std::string& name, std::string_view input) {
  const auto folder = root / target;
  std::filesystem::create_directories(folder);
  format::write_bytes(folder / name, std::as_bytes(std::span(input)));
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A text for each vocabulary.
void tokenizer() {
  const std::string text =
      "The  12345 the's\r\n\n\u00e9e\u0301 \u65e5\u672c \u0e2a\u0e27\u0e31 \U0001f469\u200d<u><u>"
      "</s>\xff\xc3\u2581a !!AB\u0301";
  for (char vocabulary = 0; vocabulary < 12; ++vocabulary)
    for (const char parse_special : {'\0', '\1'})
      write("tokenizer", std::to_string(2 * vocabulary + parse_special),
            std::string{vocabulary, parse_special} + text);
}

void vocabulary() {
  const auto word = [](std::size_t n) { return static_cast<char>(n << 3 | 1); };
  const std::string tokens =
      std::string{3, word(2)} + "ab" + '\x04' + word(3) + "abc" + '\x08' + '\x23' + "<s>x" + '\x00';
  const std::string merges{3, 'a', 0, 'b', 0, 0, 1, 'c', 0, 'x', 0, 'y', 0};
  const std::string ids_and_flags{1, 2, 1, 1, 2, 1, 0, 0, 0, 0, 1, 2, 1, 2};
  for (char pre = 0; pre < 11; ++pre)
    write("vocabulary", "bpe-" + std::to_string(pre),
          std::string{0, pre} + tokens + merges + ids_and_flags + "ab abc xy");
  write("vocabulary", "sentencepiece", std::string{1, 9} + tokens + ids_and_flags + "ab abc");
  write("vocabulary", "no-bytes", std::string{2, 0} + tokens + merges + ids_and_flags + "ab abc");
}

void hybrid_metadata() {
  ByteWriter out;
  char n_entries = 0;
  const auto key = [&](std::string_view name, auto value) {
    write_entry(out, name, value);
    ++n_entries;
  };
  key("general.architecture", "qwen35");
  for (const char* name : {"embedding_length", "feed_forward_length", "attention.key_length"})
    key(std::string("qwen35.") + name, std::uint32_t{32});
  for (const char* name :
       {"block_count", "attention.head_count", "ssm.group_count", "full_attention_interval"})
    key(std::string("qwen35.") + name, std::uint32_t{2});
  key("qwen35.context_length", std::uint32_t{64});
  key("qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
  key("qwen35.rope.dimension_count", std::uint32_t{16});
  for (const char* name : {"conv_kernel", "time_step_rank"})
    key(std::string("qwen35.ssm.") + name, std::uint32_t{4});
  key("qwen35.ssm.state_size", std::uint32_t{16});
  key("qwen35.ssm.inner_size", std::uint32_t{64});
  write("metadata", "hybrid", n_entries + as_text(out.bytes()));
}

void metadata() {
  ByteWriter out;
  write_entry(out, "general.architecture", "llama");
  for (const char* key : {"embedding_length", "feed_forward_length"})
    write_entry(out, std::string("llama.") + key, std::uint32_t{32});
  for (const char* key : {"block_count", "attention.head_count_kv"})
    write_entry(out, std::string("llama.") + key, std::uint32_t{1});
  write_entry(out, "llama.attention.head_count", std::uint32_t{2});
  write_entry(out, "llama.context_length", std::uint32_t{64});
  write_entry(out, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  write("metadata", "llama", '\x08' + as_text(out.bytes()));
  write_entry(out, "llama.rope.scaling.type", "yarn");
  write_entry(out, "llama.rope.scaling.factor", 4.0f);
  write_entry(out, "llama.rope.scaling.original_context_length", std::uint32_t{16});
  write_entry(out, "llama.rope.freq_base", 1e6f);
  write("metadata", "yarn", '\x0c' + as_text(out.bytes()));
  hybrid_metadata();
  for (const bool nested : {false, true}) {
    ByteWriter array;
    array.write<std::uint64_t>(1);
    array.write_text("k");
    for (const std::uint32_t type : {9u, nested ? 9u : 8u}) array.write(type);
    array.write<std::uint64_t>(1);
    if (nested) array.write(5u);
    array.write<std::uint64_t>(1);
    if (nested)
      array.write(-1);
    else
      array.write_text("x");
    write("metadata", nested ? "nested" : "strings", '\x01' + as_text(array.bytes()));
  }
}

void tokenizer_section() {
  Vocabulary v;
  v.tokens = {"a", "b", "ab", "<s>", " "};
  v.types = {TokenType::normal, TokenType::normal, TokenType::normal, TokenType::control,
             TokenType::user_defined};
  v.merges = {{0, 1, 2}};
  v.bos = 3;
  v.unknown = 1;
  v.add_bos = true;
  const auto write_section = [](const std::string& name, const Vocabulary& vocabulary) {
    const auto section = format::build_tokenizer_section(vocabulary);
    if (!section) std::abort();
    write("tokenizer_section", name, "\x08<s>ab xy" + as_text(*section));
  };
  for (const std::uint32_t pre : {1, 2, 3, 4, 5, 6}) {
    v.pre_tokenizer = static_cast<format::PreTokenizer>(pre);
    v.nfc = pre == 5;
    v.whole_pieces = pre == 4;
    write_section("bpe-" + std::to_string(pre), v);
  }
  v.nfc = v.whole_pieces = false;
  v.model = format::TokenizerModel::sentencepiece_bpe;
  v.merges.clear();
  v.scores = {0, 0, -1, 0, 0};
  v.space_prefix = true;
  write_section("sentencepiece", v);
}

// Each operation on a small shape and on a large one.
void kernels() {
  for (char operation = 0; operation < 15; ++operation) {
    for (const char size : {'\0', '\7', 'c'}) {
      std::string input;
      for (int i = 0; i < 9; ++i) input += std::string{i == 0 ? operation : size, 0};
      write("kernels", std::to_string(operation) + '-' + std::to_string(size), input);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_small_corpora FOLDER\n", stderr);
    return 2;
  }
  root = argv[1];
  tokenizer();
  vocabulary();
  metadata();
  tokenizer_section();
  kernels();
  return 0;
}
