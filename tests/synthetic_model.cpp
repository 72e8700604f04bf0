#include "synthetic_model.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/half.h"
#include "base/metadata.h"
#include "base/thread_pool.h"
#include "format/probes.h"
#include "format/tokenizer_section.h"
#include "format/writer.h"
#include "probe_places.h"

namespace tsq::test {
namespace {

using format::Encoding;
using format::TensorRecord;

// Rounding normally distributed weights to -1, 0, 1 times their mean magnitude (BitNet's and
// TriLM's rule) makes 31 % of them 0.
constexpr double kAbsmeanZeros = 0.31;
// Ternary-Bonsai 2 27B's, as its readers report it.
constexpr double kBonsai2Zeros = 0.328;

constexpr SyntheticShape kShapes[] = {
    {.name = "bonsai-8b",
     .architecture = "qwen3",
     .layers = 36,
     .hidden = 4096,
     .ffn = 12288,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128,
     .vocab = 151936,
     .context = 65536,
     .rope_base = 1e6f,
     .rms_epsilon = 1e-6f,
     .head_norms = true,
     .tied_head = false,
     .ternary_embedding = true,
     .rotation = 0,
     .zero_rate = kAbsmeanZeros},
    {.name = "llama-1.7b",
     .architecture = "llama",
     .layers = 24,
     .hidden = 2048,
     .ffn = 8192,
     .heads = 32,
     .kv_heads = 32,
     .head_dim = 64,
     .vocab = 49152,
     .context = 8192,
     .rope_base = 130000,
     .rms_epsilon = 1e-5f,
     .head_norms = false,
     .tied_head = true,
     .ternary_embedding = false,
     .rotation = 0,
     .zero_rate = kAbsmeanZeros},
    {.name = "bonsai2-27b",
     .architecture = "qwen35",
     .layers = 64,
     .hidden = 5120,
     .ffn = 17408,
     .heads = 24,
     .kv_heads = 4,
     .head_dim = 256,
     .vocab = 248320,
     .context = 262144,
     .rope_base = 1e7f,
     .rms_epsilon = 1e-6f,
     .head_norms = true,
     .tied_head = false,
     .ternary_embedding = true,
     .rotation = 1024,
     .zero_rate = kBonsai2Zeros,
     .delta_net = {.interval = 4, .k_heads = 16, .v_heads = 48, .head_dim = 128, .rope_dims = 64}},
    {.name = "bonsai2-tiny",
     .architecture = "qwen35",
     .layers = 4,
     .hidden = 256,
     .ffn = 640,
     .heads = 6,
     .kv_heads = 2,
     .head_dim = 64,
     .vocab = 2048,
     .context = 4096,
     .rope_base = 1e7f,
     .rms_epsilon = 1e-6f,
     .head_norms = true,
     .tied_head = false,
     .ternary_embedding = true,
     .rotation = 128,
     .zero_rate = kBonsai2Zeros,
     .delta_net = {.interval = 4, .k_heads = 2, .v_heads = 6, .head_dim = 64, .rope_dims = 16}},
};

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }  // [0, 1)

 private:
  std::uint64_t state_;
};

// The tensors' bytes, 32 rows at a time; each block depends on nothing but its place.
class Filler {
 public:
  Filler(const SyntheticShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {}

  static std::size_t block_bytes(const TensorRecord& tensor) {
    if (format::is_ternary(tensor.encoding)) return format::row_block_bytes(tensor.shape());
    return rows_of_block(tensor) *
           format::dense_row_bytes(tensor.encoding, tensor.flags, tensor.cols());
  }

  // Returns how many of the block's weights are 0 (ternary).
  std::uint64_t fill(const TensorRecord& tensor, std::size_t index, std::uint64_t block,
                     std::byte* out) const {
    Random random(seed_ * 0x100000001b3u ^ Random(index << 32 ^ block).next());
    if (format::is_ternary(tensor.encoding)) return fill_ternary(tensor, block, random, out);
    fill_dense(tensor, random, out);
    return 0;
  }

 private:
  static std::size_t rows_of_block(const TensorRecord& tensor) {
    return std::min<std::size_t>(format::kRowBlock, tensor.rows());
  }

  std::uint64_t fill_ternary(const TensorRecord& tensor, std::uint64_t block, Random& random,
                             std::byte* out) const {
    const std::size_t cols = tensor.cols(), groups = cols / format::kGroup;
    const std::size_t rows = std::min(format::kRowBlock, tensor.rows() - block * format::kRowBlock);
    std::vector<std::uint8_t> codes(format::kRowBlock * cols, 1);
    std::vector<std::uint16_t> scales(format::kRowBlock * groups);
    const bool sparse = tensor.encoding == Encoding::s34;
    const std::span<std::uint8_t> used(codes.data(), rows * cols);
    sparse ? random_quads(random, used) : random_codes(random, used);
    // A row of unit inputs gives an output of about 1.
    const double zeros = sparse ? 0.25 : shape_.zero_rate;
    const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(cols) * (1 - zeros)));
    for (std::size_t i = 0; i < rows * groups; ++i)
      scales[i] = f32_to_f16(unit * (0.75f + 0.5f * random.uniform()));
    format::pack_row_block(tensor.shape(), codes.data(), scales.data(), out);
    return static_cast<std::uint64_t>(std::count(used.begin(), used.end(), 1));
  }

  void random_codes(Random& random, std::span<std::uint8_t> codes) const {
    const auto zero_below = static_cast<std::uint64_t>(shape_.zero_rate * 65536);
    for (std::size_t i = 0; i < codes.size(); i += 4) {
      std::uint64_t bits = random.next();
      for (std::size_t j = 0; j < 4; ++j, bits >>= 16)
        codes[i + j] = (bits & 0xffff) < zero_below ? 1 : bits & 1 ? 2 : 0;
    }
  }

  static void random_quads(Random& random, std::span<std::uint8_t> codes) {
    for (std::size_t i = 0; i < codes.size(); i += 4) {
      const auto quad = format::s34_codes(static_cast<unsigned>(random.next() >> 59));
      std::ranges::copy(quad, codes.data() + i);
    }
  }

  // The f32 values: norms are ones, a state fades over some hundreds of tokens, and a convolution
  // keeps the size of what it takes.
  static float value_of(const TensorRecord& tensor, Random& random) {
    if (tensor.name.ends_with(".ssm_a")) return -0.05f - 0.95f * random.uniform();
    if (tensor.name.ends_with(".ssm_dt.bias")) return -4 * random.uniform() - 1;
    if (tensor.name.ends_with(".ssm_conv1d.weight")) return 1.7320508f * (random.uniform() - 0.5f);
    return 1;
  }

  // Matrices are uniform, with the deviation 0.02.
  static void fill_dense(const TensorRecord& tensor, Random& random, std::byte* out) {
    const std::size_t n = rows_of_block(tensor) * tensor.cols();
    if (tensor.encoding == Encoding::f32) {
      std::vector<float> values(n);
      for (float& value : values) value = value_of(tensor, random);
      std::memcpy(out, values.data(), n * sizeof(float));
      return;
    }
    std::vector<std::uint16_t> values(n);
    for (auto& bits : values) {
      const float value = 0.0692820f * (random.uniform() - 0.5f);
      bits = tensor.encoding == Encoding::f16
                 ? f32_to_f16(value)
                 : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
    std::memcpy(out, values.data(), n * sizeof(std::uint16_t));
  }

  const SyntheticShape& shape_;
  const std::uint64_t seed_;
};

// Collects the records of a file; a rotation for each width that is rotated.
class Layout {
 public:
  Layout(const SyntheticShape& shape, const SyntheticOptions& options)
      : shape_(shape), options_(options) {
    const std::uint64_t hidden = shape.hidden;
    if (shape.ternary_embedding) {
      ternary("token_embd.weight", shape.vocab, hidden);
    } else {
      dense("token_embd.weight", Encoding::f16, hidden, shape.vocab);
    }
    dense("output_norm.weight", Encoding::f32, hidden);
    if (!shape.tied_head) ternary("output.weight", shape.vocab, hidden);
    const std::uint32_t interval = shape.delta_net.interval;
    for (std::uint32_t i = 0; i < shape.layers; ++i) {
      const std::string prefix = "blk." + std::to_string(i) + ".";
      dense(prefix + "attn_norm.weight", Encoding::f32, hidden);
      interval == 0 || (i + 1) % interval == 0 ? attention(prefix) : delta_net(prefix);
      const char* const norm = interval == 0 ? "ffn_norm.weight" : "post_attention_norm.weight";
      dense(prefix + norm, Encoding::f32, hidden);
      ternary(prefix + "ffn_gate.weight", shape.ffn, hidden);
      ternary(prefix + "ffn_up.weight", shape.ffn, hidden);
      ternary(prefix + "ffn_down.weight", hidden, shape.ffn);
    }
  }

  std::vector<TensorRecord> take_tensors() { return std::move(tensors_); }
  std::vector<format::Rotation> take_rotations() { return std::move(rotations_); }

 private:
  void attention(const std::string& prefix) {
    const std::uint64_t hidden = shape_.hidden, q = shape_.heads * shape_.head_dim,
                        kv = shape_.kv_heads * shape_.head_dim;
    const bool gated = shape_.delta_net.interval != 0;
    ternary(prefix + "attn_q.weight", gated ? 2 * q : q, hidden);
    ternary(prefix + "attn_k.weight", kv, hidden);
    ternary(prefix + "attn_v.weight", kv, hidden);
    if (shape_.head_norms) {
      dense(prefix + "attn_q_norm.weight", Encoding::f32, shape_.head_dim);
      dense(prefix + "attn_k_norm.weight", Encoding::f32, shape_.head_dim);
    }
    ternary(prefix + "attn_output.weight", hidden, q);
  }

  // alpha and beta are never rotated: they are dense.
  void delta_net(const std::string& prefix) {
    const DeltaNet& net = shape_.delta_net;
    const std::uint64_t hidden = shape_.hidden, v = net.v_heads * net.head_dim,
                        channels = 2 * net.k_heads * net.head_dim + v;
    ternary(prefix + "attn_qkv.weight", channels, hidden);
    ternary(prefix + "attn_gate.weight", v, hidden);
    dense(prefix + "ssm_alpha.weight", Encoding::bf16, hidden, net.v_heads);
    dense(prefix + "ssm_beta.weight", Encoding::bf16, hidden, net.v_heads);
    dense(prefix + "ssm_conv1d.weight", Encoding::f32, channels, net.taps);
    dense(prefix + "ssm_a", Encoding::f32, net.v_heads);
    dense(prefix + "ssm_dt.bias", Encoding::f32, net.v_heads);
    dense(prefix + "ssm_norm.weight", Encoding::f32, net.head_dim);
    ternary(prefix + "ssm_out.weight", hidden, v);
  }

  TensorRecord& dense(std::string name, Encoding encoding, std::uint64_t cols,
                      std::uint64_t rows = 1) {
    TensorRecord& tensor = tensors_.emplace_back();
    tensor.name = std::move(name);
    tensor.encoding = encoding;
    tensor.n_dims = rows == 1 ? 1 : 2;
    tensor.dims = {cols, rows, 1, 1};
    return tensor;
  }

  void ternary(std::string name, std::uint64_t rows, std::uint64_t cols) {
    TensorRecord& tensor = dense(std::move(name), options_.encoding, cols, rows);
    tensor.n_dims = 2;
    tensor.scale_kind = format::ScaleKind::per_group;
    tensor.activation_quant = format::ActivationQuant::per_group;
    if (shape_.rotation != 0) tensor.input_rotation = rotation_of(static_cast<std::uint32_t>(cols));
  }

  std::uint32_t rotation_of(std::uint32_t width) {
    std::uint32_t i = 0;
    while (i < rotations_.size() && rotations_[i].width != width) ++i;
    if (i == rotations_.size()) {
      Random random(options_.seed ^ width);
      std::vector<std::uint32_t> signs(width / 32);
      for (auto& word : signs) word = static_cast<std::uint32_t>(random.next());
      rotations_.push_back({.block = shape_.rotation, .width = width, .signs = std::move(signs)});
    }
    return i;
  }

  const SyntheticShape& shape_;
  const SyntheticOptions& options_;
  std::vector<TensorRecord> tensors_;
  std::vector<format::Rotation> rotations_;
};

std::vector<format::RotationProbe> filled_probes(const format::FileContents& contents,
                                                 const Filler& filler) {
  auto probes = contents.rotation_probes;
  for (format::RotationProbe& probe : probes) {
    const TensorRecord& tensor = contents.tensors[probe.tensor];
    std::vector<std::byte> block(Filler::block_bytes(tensor));
    filler.fill(tensor, probe.tensor, probe.row / format::kRowBlock, block.data());
    format::Shape shape = tensor.shape();
    shape.rows = format::kRowBlock;
    std::vector<float> row(tensor.cols());
    format::decode_row(shape, {block}, probe.row % format::kRowBlock, row.data());
    probe.value = format::unrotated_weight(row, contents.rotations[probe.rotation], probe.col);
  }
  return probes;
}

// The 256 bytes, then all pairs of them, then triples, as many as there is room for.
format::Vocabulary made_up_vocabulary(std::uint32_t size) {
  format::Vocabulary vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte)
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  for (std::uint32_t i = 0; vocabulary.tokens.size() < size; ++i) {
    const std::uint32_t left = i / 256, right = i % 256;  // token 256 + n is pair n
    const auto result = static_cast<std::uint32_t>(vocabulary.tokens.size());
    vocabulary.tokens.push_back(vocabulary.tokens[left] + vocabulary.tokens[right]);
    vocabulary.merges.push_back({left, right, result});
  }
  vocabulary.types.assign(vocabulary.tokens.size(), format::TokenType::normal);
  vocabulary.eos = 0;
  return vocabulary;
}

void write_metadata(const SyntheticShape& shape, format::FileContents& contents) {
  ByteWriter out;
  const auto write = [&](const std::string& key, const auto& value) {
    write_entry(out, key, value);
    ++contents.n_metadata;
  };
  const std::string prefix = std::string(shape.architecture) + ".";
  write("general.architecture", shape.architecture);
  write("general.name", shape.name);
  write(prefix + "block_count", shape.layers);
  write(prefix + "embedding_length", shape.hidden);
  write(prefix + "feed_forward_length", shape.ffn);
  write(prefix + "context_length", shape.context);
  write(prefix + "attention.head_count", shape.heads);
  write(prefix + "attention.head_count_kv", shape.kv_heads);
  write(prefix + "attention.key_length", shape.head_dim);
  write(prefix + "attention.value_length", shape.head_dim);
  write(prefix + "attention.layer_norm_rms_epsilon", shape.rms_epsilon);
  write(prefix + "rope.freq_base", shape.rope_base);
  if (const DeltaNet& net = shape.delta_net; net.interval != 0) {
    write(prefix + "rope.dimension_count", net.rope_dims);
    write(prefix + "full_attention_interval", net.interval);
    write(prefix + "ssm.conv_kernel", net.taps);
    write(prefix + "ssm.state_size", net.head_dim);
    write(prefix + "ssm.group_count", net.k_heads);
    write(prefix + "ssm.time_step_rank", net.v_heads);
    write(prefix + "ssm.inner_size", net.v_heads * net.head_dim);
  }
  contents.metadata = out.take();
}

Result<void> append_tensor(format::Writer& writer, std::size_t index, const Filler& filler,
                           ThreadPool& pool) {
  constexpr std::size_t kSlabBytes = std::size_t{4} << 20;
  const TensorRecord& tensor = writer.contents().tensors[index];
  const std::size_t block_bytes = Filler::block_bytes(tensor);
  const std::uint64_t blocks = (tensor.rows() + format::kRowBlock - 1) / format::kRowBlock;
  const std::size_t at_once = std::max<std::size_t>(2, kSlabBytes / block_bytes);
  std::vector<std::byte> slab(at_once * block_bytes);
  std::atomic<std::uint64_t> zeros{0};
  std::uint64_t left = tensor.body_bytes;
  for (std::uint64_t start = 0; start < blocks; start += at_once) {
    const std::size_t n = std::min<std::uint64_t>(at_once, blocks - start);
    pool.parallel_for(n, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i)
        zeros += filler.fill(tensor, index, start + i, slab.data() + i * block_bytes);
    });
    // The rows of a dense tensor need not fill its last block.
    const std::size_t bytes = std::min<std::uint64_t>(n * block_bytes, left);
    left -= bytes;
    if (auto done = writer.append(std::span(slab).first(bytes)); !done) return done;
  }
  return writer.end_tensor({}, zeros);
}

Result<format::FileContents> make_contents(const SyntheticShape& shape,
                                           const SyntheticOptions& options) {
  format::FileContents contents;
  contents.header.hidden_size = shape.hidden;
  contents.header.num_layers = shape.layers;
  contents.header.vocab_size = shape.vocab;
  contents.header.model_name = shape.name;
  Layout layout(shape, options);
  contents.tensors = layout.take_tensors();
  contents.rotations = layout.take_rotations();
  contents.rotation_probes =
      probe_places(contents.tensors, static_cast<std::uint32_t>(contents.rotations.size()));
  write_metadata(shape, contents);
  auto section = format::build_tokenizer_section(made_up_vocabulary(shape.vocab));
  if (!section) return section.error();
  contents.tokenizer = std::move(*section);
  return contents;
}

}  // namespace

std::span<const SyntheticShape> synthetic_shapes() { return kShapes; }

Result<SyntheticSize> synthetic_size(const SyntheticShape& shape, const SyntheticOptions& options) {
  auto contents = make_contents(shape, options);
  if (!contents) return contents.error();
  const auto folder = std::filesystem::temp_directory_path();
  const auto writer = format::Writer::create(folder / "synthetic_size.tsq", std::move(*contents));
  if (!writer) return writer.error();
  SyntheticSize size;
  size.file_bytes = writer->file_bytes();
  for (const TensorRecord& tensor : writer->contents().tensors) {
    if (!format::is_ternary(tensor.encoding)) continue;
    size.ternary_weights += tensor.rows() * tensor.cols();
    size.ternary_bytes += tensor.body_bytes;
  }
  return size;
}

Result<void> write_synthetic(const std::filesystem::path& path, const SyntheticShape& shape,
                             const SyntheticOptions& options) {
  auto contents = make_contents(shape, options);
  if (!contents) return contents.error();
  auto writer = format::Writer::create(path, std::move(*contents));
  if (!writer) return writer.error();
  const Filler filler(shape, options.seed);
  ThreadPool pool(usable_cores());
  for (std::size_t i = 0; i < writer->contents().tensors.size(); ++i)
    if (auto done = append_tensor(*writer, i, filler, pool); !done) return done;
  writer->set_rotation_probes(filled_probes(writer->contents(), filler));
  if (auto done = writer->seal({.state = format::TokenProbeState::not_asked}); !done) return done;
  return writer->commit();
}

}  // namespace tsq::test
