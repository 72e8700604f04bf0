#include "format_files.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include "base/hash.h"
#include "base/metadata.h"
#include "format/probes.h"
#include "format/tokenizer_section.h"
#include "temporary_folder.h"

namespace tsq::format {
namespace {

template <class T>
T expect(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::abort();
  }
  return std::move(*result);
}

TensorRecord dense(std::string name, Encoding encoding, std::vector<std::uint64_t> dims,
                   std::uint32_t flags = 0) {
  TensorRecord tensor;
  tensor.name = std::move(name);
  tensor.encoding = encoding;
  tensor.flags = flags;
  tensor.n_dims = static_cast<std::uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  return tensor;
}

TensorRecord ternary(std::string name, Encoding encoding, std::uint64_t cols, std::uint64_t rows,
                     std::uint32_t rotation) {
  TensorRecord tensor = dense(std::move(name), encoding, {cols, rows});
  tensor.scale_kind = ScaleKind::per_group;
  tensor.activation_quant = ActivationQuant::per_group;
  tensor.input_rotation = rotation;
  return tensor;
}

// Finite numbers in every value and scale, zeros in the padding.
std::vector<std::byte> dense_body(const TensorRecord& tensor, std::mt19937& random) {
  std::vector<std::byte> body(*body_bytes(tensor.shape()));
  const bool blocks = tensor.encoding == Encoding::q8 || tensor.encoding == Encoding::q4;
  const std::size_t row_bytes = body.size() / tensor.rows();
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    std::byte* const bytes = body.data() + row * row_bytes;
    if (blocks) {  // whole blocks only: every bit pattern of a code is one
      for (std::size_t i = 0; i < row_bytes; ++i) bytes[i] = static_cast<std::byte>(random() % 60);
      continue;
    }
    const std::size_t width = tensor.encoding == Encoding::f32 ? 4 : 2;
    for (std::size_t i = 0; i < width * tensor.cols(); ++i)
      bytes[i] = static_cast<std::byte>(random() % 60);
  }
  return body;
}

// Ternary codes; in s34 each quad holds one 1.
void fill_codes(const TensorRecord& tensor, std::mt19937& random, std::uint8_t* codes) {
  if (tensor.encoding != Encoding::s34) {
    for (std::uint64_t col = 0; col < tensor.cols(); ++col)
      codes[col] = static_cast<std::uint8_t>(random() % 3);
    return;
  }
  for (std::uint64_t quad = 0; quad < tensor.cols() / 4; ++quad) {
    const std::uint64_t g = quad / kS34Quads, zero = random() % 4;
    for (std::size_t p = 0; p < 4; ++p)
      codes[g * kGroup + s34_input(tensor.flags, quad % kS34Quads, p)] =
          static_cast<std::uint8_t>(p == zero ? 1 : random() % 2 * 2);
  }
}

Result<void> write_ternary(Writer& writer, const TensorRecord& tensor, std::mt19937& random) {
  const std::uint64_t cols = padded_cols(tensor.encoding, tensor.cols());
  const std::uint64_t n_scales = cols / kGroup * scale_lines(tensor.shape());  // of a row
  std::uint64_t zeros = 0;
  for (std::uint64_t first = 0; first < tensor.rows(); first += kRowBlock) {
    std::vector<std::uint8_t> codes(kRowBlock * cols, 1);
    std::vector<std::uint16_t> scales(kRowBlock * n_scales, 0);
    for (std::uint64_t i = 0; i < kRowBlock && first + i < tensor.rows(); ++i) {
      std::uint8_t* const row = codes.data() + i * cols;
      fill_codes(tensor, random, row);
      zeros += static_cast<std::uint64_t>(std::count(row, row + tensor.cols(), 1));
      for (std::uint64_t k = 0; k < n_scales; ++k)
        scales[i * n_scales + k] = static_cast<std::uint16_t>(0x2c00 + random() % 0x400);
    }
    std::vector<std::byte> block(row_block_bytes(tensor.shape()));
    pack_row_block(tensor.shape(), codes.data(), scales.data(), block.data());
    if (auto done = writer.append(block); !done) return done;
  }
  std::vector<float> array(tensor.scale_bytes / sizeof(float));
  for (std::size_t row = 0; row < std::min(array.size(), tensor.rows()); ++row)
    array[row] = static_cast<float>(random() % 1000 + 1) / 777;
  return writer.end_tensor(array, zeros);
}

std::vector<std::byte> sample_tokenizer() {
  Vocabulary vocabulary;
  vocabulary.tokens = {"a", "b", "ab", "<|end|>", "c", "abc"};
  vocabulary.types.assign(6, TokenType::normal);
  vocabulary.types[3] = TokenType::control;
  vocabulary.merges = {{0, 1, 2}, {2, 4, 5}};
  vocabulary.eos = 3;
  return expect(build_tokenizer_section(vocabulary));
}

}  // namespace

FileContents sample_contents() {
  FileContents contents;
  contents.header.hidden_size = 160;
  contents.header.num_layers = 1;
  contents.header.vocab_size = 6;
  contents.header.model_name = "Sample";

  ByteWriter metadata;
  write_entry(metadata, "general.architecture", "test");
  write_entry(metadata, "test.embedding_length", std::uint32_t{160});
  write_entry(metadata, "test.block_count", std::uint32_t{1});
  write_entry(metadata, "test.scale", 0.5f);
  write_entry(metadata, "test.onoff", true);
  contents.n_metadata = 5;
  contents.metadata = metadata.take();

  contents.rotations = {{.block = 32, .width = 160, .signs = {0x12345678, 1, 2, 3, 0xffffffff}},
                        {.block = 16, .width = 48, .signs = {}}};

  contents.tensors.resize(kSampleTensors);
  contents.tensors[kEmbd] = dense("token_embd.weight", Encoding::q4, {160, 6}, kFlagMinimum);
  contents.tensors[kNorm] = dense("blk.0.attn_norm.weight", Encoding::f32, {150});
  contents.tensors[kQ] = ternary("blk.0.attn_q.weight", Encoding::t2, 160, 33, 0);
  contents.tensors[kDown] = ternary("blk.0.ffn_down.weight", Encoding::t1, 48, 3, 1);
  contents.tensors[kUp] = ternary("blk.0.ffn_up.weight", Encoding::t1, 700, 2, kNoRotation);
  contents.tensors[kF16] = dense("half", Encoding::f16, {7, 1});
  contents.tensors[kBf16] = dense("brain", Encoding::bf16, {32, 2, 3});
  contents.tensors[kQ8] = dense("eight", Encoding::q8, {64, 2});

  contents.tokenizer = sample_tokenizer();
  contents.rotation_probes = {{.rotation = 0, .tensor = kQ, .row = 32, .col = 77},
                              {.rotation = 1, .tensor = kDown, .row = 1, .col = 20}};
  return contents;
}

TokenProbe sample_token_probe() {
  return {.state = TokenProbeState::present, .tokens = {1, 2, 5}, .mean_nll = 1.25, .greedy = {0}};
}

Result<void> write_tensors(Writer& writer) {
  std::mt19937 random(1);
  for (const TensorRecord& tensor : writer.contents().tensors) {
    if (is_ternary(tensor.encoding)) {
      if (auto done = write_ternary(writer, tensor, random); !done) return done;
      continue;
    }
    const auto body = dense_body(tensor, random);
    const std::size_t half = body.size() / 2;  // in two pieces
    if (auto done = writer.append(std::span(body).first(half)); !done) return done;
    if (auto done = writer.append(std::span(body).subspan(half)); !done) return done;
    if (auto done = writer.end_tensor({}, 0); !done) return done;
  }
  return {};
}

Bytes make_file(FileContents contents, const TokenProbe& probe) {
  const TemporaryFolder folder;
  auto writer = expect(Writer::create(folder.path() / "sample.tsq", std::move(contents)));
  if (auto done = write_tensors(writer); !done) std::abort();
  // The probes' values from the file itself: here they only have to agree with it.
  if (auto done = writer.seal(probe); !done) std::abort();
  const Bytes unprobed = read_file(writer.temporary_path());
  const File file = expect(File::parse(unprobed.span()));
  auto probes = writer.contents().rotation_probes;
  for (RotationProbe& p : probes) {
    const TensorRecord& tensor = file.tensors()[p.tensor];
    std::vector<float> row(tensor.cols());
    decode_row(tensor.shape(), file.bytes(tensor), p.row, row.data());
    p.value = unrotated_weight(row, file.rotations()[p.rotation], p.col);
  }
  writer.set_rotation_probes(std::move(probes));
  if (auto done = writer.seal(probe); !done) std::abort();
  return read_file(writer.temporary_path());
}

const Bytes& sample_file() {
  static const Bytes file = make_file(sample_contents(), sample_token_probe());
  return file;
}

Bytes copy_of(std::span<const std::byte> bytes) {
  Bytes copy(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.data());
  return copy;
}

Bytes read_file(const std::filesystem::path& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::size_t section_at(const Bytes& bytes, std::size_t k) {
  return get<std::uint64_t>(bytes, 96 + 64 * k + 8);
}

std::size_t section_bytes(const Bytes& bytes, std::size_t k) {
  return get<std::uint64_t>(bytes, 96 + 64 * k + 16);
}

std::size_t record_at(const Bytes& bytes, std::size_t tensor, std::size_t field) {
  return section_at(bytes, 3) + 192 * tensor + field;
}

void sign(Bytes& bytes) {
  put<std::uint64_t>(bytes, 64, bytes.size());
  for (std::size_t k = 0; k < 6; ++k) {
    const std::size_t at = section_at(bytes, k), n = section_bytes(bytes, k);
    if (at > bytes.size() || n > bytes.size() - at) continue;  // what the test is about
    put(bytes, 96 + 64 * k + 32, sha256(bytes.span().subspan(at, n)));
  }
  put(bytes, 992, sha256(bytes.span().first(992)));
}

}  // namespace tsq::format
