// Writes the committed inputs of reader_fuzz.cpp: make_reader_corpus FOLDER.
#include <cstdio>
#include <string>

#include "base/metadata.h"
#include "format_files.h"

namespace {

using namespace tsq;
using namespace tsq::format;

// The file without the zeros before its data section.
void write_input(const std::filesystem::path& path, const Bytes& file) {
  const std::size_t end = section_at(file, 5) + section_bytes(file, 5);
  const std::size_t data = section_at(file, 6);
  std::vector<std::byte> input(file.data(), file.data() + end);
  input.insert(input.end(), file.data() + data, file.data() + file.size());
  write_bytes(path, input);
}

FileContents nothing() {
  FileContents contents;
  contents.header.hidden_size = contents.header.num_layers = contents.header.vocab_size = 1;
  return contents;
}

// One ternary tensor, small enough that mutations reach everything.
FileContents one_tensor(Encoding encoding, std::uint64_t cols) {
  FileContents contents = sample_contents();
  contents.tensors = {contents.tensors[kQ]};
  contents.tensors[0].encoding = encoding;
  contents.tensors[0].dims = {cols, 2, 1, 1};
  contents.rotations = {{.block = 4, .width = static_cast<std::uint32_t>(cols), .signs = {}}};
  contents.rotation_probes = {{.row = 1, .col = 3}};
  contents.tokenizer.clear();
  return contents;
}

FileContents metadata() {
  FileContents contents = nothing();
  ByteWriter out;
  const auto array = [&](const char* key, std::uint32_t type, std::uint64_t count) {
    out.write<std::uint64_t>(std::char_traits<char>::length(key));
    out.write_text(key);
    out.write(9u);
    out.write(type);
    out.write(count);
  };
  array("strings", 8, 2);
  for (const std::string text : {"x", "yz"}) {
    out.write<std::uint64_t>(text.size());
    out.write_text(text);
  }
  array("nested", 9, 1);
  out.write(5u);
  out.write<std::uint64_t>(3);
  for (const int number : {1, -2, 3}) out.write(number);
  array("flags", 7, 2);
  out.write<std::uint16_t>(0x0100);
  contents.metadata = out.take();
  contents.n_metadata = 3;
  return contents;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_reader_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  write_input(folder / "sample", sample_file());
  write_input(folder / "nothing", make_file(nothing()));
  write_input(folder / "metadata", make_file(metadata()));
  write_input(folder / "t2", make_file(one_tensor(Encoding::t2, 132)));
  write_input(folder / "t1", make_file(one_tensor(Encoding::t1, 132), sample_token_probe()));
  write_input(folder / "s34", make_file(one_tensor(Encoding::s34, 132)));
  FileContents with_tokenizer = nothing();
  with_tokenizer.header.vocab_size = 6;
  with_tokenizer.tokenizer = sample_contents().tokenizer;
  write_input(folder / "tokenizer", make_file(with_tokenizer));
  return 0;
}
