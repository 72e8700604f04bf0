#include "import/value_heads.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <optional>
#include <set>

#include "base/errorf.h"
#include "import/blocks.h"

namespace tsq::importer {
namespace {

bool is_qwen35(const Checkpoint& checkpoint) {
  const Value* const value = checkpoint.metadata.find("general.architecture");
  return value && value->as_string() == "qwen35";
}

Result<std::uint64_t> read_size(const Metadata& metadata, const char* key, std::uint64_t max) {
  const auto value = metadata.require_u64(key);
  if (!value) return value;
  if (*value >= 1 && *value <= max) return value;
  return errorf(ErrorCode::damaged, "key '%s' is %" PRIu64 ", expected 1 to %" PRIu64, key, *value,
                max);
}

struct Heads {
  std::uint64_t n_k = 0, n_v = 0, k_dim = 0, v_dim = 0, taps = 0;

  std::uint64_t q_and_k() const { return 2 * n_k * k_dim; }
  std::uint64_t v() const { return n_v * v_dim; }
  bool shared() const { return n_v != n_k; }
  TiledHeads tiled(std::uint64_t first, std::uint64_t size) const {
    return shared() ? TiledHeads{first, size, n_k, n_v / n_k} : TiledHeads{};
  }
};

Result<Heads> read_heads(const Metadata& metadata) {
  Heads heads;
  std::uint64_t inner = 0;
  const struct {
    const char* key;
    std::uint64_t* size;
    std::uint64_t max;  // what the graph takes
  } kSizes[] = {{"qwen35.ssm.group_count", &heads.n_k, 1 << 14},
                {"qwen35.ssm.time_step_rank", &heads.n_v, 1 << 14},
                {"qwen35.ssm.state_size", &heads.k_dim, 1024},
                {"qwen35.ssm.inner_size", &inner, 1 << 24},
                {"qwen35.ssm.conv_kernel", &heads.taps, 1024}};
  for (const auto& [key, size, max] : kSizes) {
    const auto read = read_size(metadata, key, max);
    if (!read) return read.error();
    *size = *read;
  }
  if (heads.n_v % heads.n_k != 0) {
    return errorf(ErrorCode::damaged,
                  "key 'qwen35.ssm.time_step_rank' is %" PRIu64
                  ", expected a multiple of 'qwen35.ssm.group_count', %" PRIu64,
                  heads.n_v, heads.n_k);
  }
  if (inner % heads.n_v != 0) {
    return errorf(ErrorCode::damaged,
                  "key 'qwen35.ssm.inner_size' is %" PRIu64
                  ", expected a multiple of 'qwen35.ssm.time_step_rank', %" PRIu64,
                  inner, heads.n_v);
  }
  heads.v_dim = inner / heads.n_v;
  return heads;
}

// The layer N of blk.N.PART.
struct LayerName {
  std::uint64_t layer;
  std::string_view part;
};
std::optional<LayerName> parse_layer_name(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  LayerName parsed = {};
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.layer);
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (error != std::errc() || !name.starts_with('.')) return std::nullopt;
  parsed.part = name.substr(1);
  return parsed;
}

class Grouper {
 public:
  Grouper(Checkpoint& checkpoint, const Heads& heads) : checkpoint_(checkpoint), heads_(heads) {}

  Result<void> group(Tensor& tensor, std::string_view part) {
    const std::uint64_t v = heads_.v(), channels = heads_.q_and_k() + v;
    if (part == "attn_qkv.weight") return rows(tensor, channels, heads_.q_and_k(), heads_.v_dim);
    if (part == "attn_gate.weight") return rows(tensor, v, 0, heads_.v_dim);
    if (part == "ssm_alpha.weight" || part == "ssm_beta.weight") {
      return rows(tensor, heads_.n_v, 0, 1);
    }
    if (part == "ssm_a" || part == "ssm_dt.bias") return vector(tensor);
    if (part == "ssm_conv1d.weight") return convolution(tensor, channels);
    if (part == "ssm_out.weight") return columns(tensor, v);
    return {};
  }

 private:
  static Error wrong_size(const Tensor& tensor, const char* what, std::uint64_t found,
                          std::uint64_t expected) {
    return errorf(ErrorCode::damaged,
                  "tensor '%s' has %" PRIu64 " %s, expected %" PRIu64 " by the keys 'qwen35.ssm.*'",
                  printable(tensor.name).c_str(), found, what, expected);
  }

  Result<void> rows(Tensor& tensor, std::uint64_t n, std::uint64_t first,
                    std::uint64_t size) const {
    if (tensor.rows() != n) return wrong_size(tensor, "rows", tensor.rows(), n);
    tensor.tiled_rows = heads_.tiled(first, size);
    return {};
  }

  Result<void> columns(Tensor& tensor, std::uint64_t n) const {
    if (tensor.cols() != n) return wrong_size(tensor, "inputs", tensor.cols(), n);
    if (!heads_.shared() || tensor.rotation != format::kNoRotation) return {};
    if (checkpoint_.gdn_v_grouped) {
      return errorf(ErrorCode::unsupported,
                    "tensor '%s' is not rotated, but 'prism.hadamard.gdn_v_grouped' is true, "
                    "which is about rotated ones: the order of its inputs is not known",
                    printable(tensor.name).c_str());
    }
    const std::uint64_t whole = movable(tensor);
    if (heads_.v_dim % whole != 0) {
      return errorf(ErrorCode::unsupported,
                    "tensor '%s' is %s, of which %" PRIu64
                    " weights move together, and value heads have %" PRIu64
                    ": they cannot be put back into their order without loss",
                    printable(tensor.name).c_str(), source_type_name(tensor.type), whole,
                    heads_.v_dim);
    }
    tensor.tiled_cols = heads_.tiled(0, heads_.v_dim);
    return {};
  }

  // So many weights have one scale. Blocks of 256 of dense types are unpacked, not moved.
  static std::uint64_t movable(const Tensor& tensor) {
    if (!is_ternary(tensor.type)) {
      const std::uint64_t weights = block_shape(tensor.type).weights;
      return weights <= format::kDenseBlock ? weights : 1;
    }
    return scale_kind(tensor) == format::ScaleKind::per_group ? scale_group(tensor) : 1;
  }

  // Other types are smaller than what is made of them by a factor without a bound.
  static Result<void> check_plain(const Tensor& tensor) {
    if (tensor.type == SourceType::f32 || tensor.type == SourceType::f16 ||
        tensor.type == SourceType::bf16) {
      return {};
    }
    return errorf(ErrorCode::unsupported, "tensor '%s' is %s, expected F32, F16 or BF16",
                  printable(tensor.name).c_str(), source_type_name(tensor.type));
  }

  Result<void> vector(Tensor& tensor) {
    if (const auto plain = check_plain(tensor); !plain) return plain;
    if (tensor.cols() != heads_.n_v || tensor.rows() != 1) {
      return wrong_size(tensor, "values", tensor.cols() * tensor.rows(), heads_.n_v);
    }
    std::vector<float> stored(static_cast<std::size_t>(heads_.n_v)), values(stored.size());
    decode_row(tensor, 0, stored.data());
    const TiledHeads tiled = heads_.tiled(0, 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = stored[static_cast<std::size_t>(tiled.stored(i))];
    }
    replace(tensor, std::move(values), {heads_.n_v, 1});
    return {};
  }

  Result<void> convolution(Tensor& tensor, std::uint64_t channels) {
    if (tensor.rows() != channels) return wrong_size(tensor, "channels", tensor.rows(), channels);
    if (tensor.cols() != heads_.taps) return wrong_size(tensor, "taps", tensor.cols(), heads_.taps);
    if (const auto plain = check_plain(tensor); !plain) return plain;
    tensor.tiled_rows = heads_.tiled(heads_.q_and_k(), heads_.v_dim);
    const auto n = static_cast<std::size_t>(channels);
    std::vector<float> taps(static_cast<std::size_t>(heads_.taps)), turned(n * taps.size());
    for (std::size_t channel = 0; channel < n; ++channel) {
      decode_row(tensor, channel, taps.data());
      for (std::size_t i = 0; i < taps.size(); ++i) turned[i * n + channel] = taps[i];
    }
    replace(tensor, std::move(turned), {channels, heads_.taps});
    return {};
  }

  // What a small tensor holds, by what it means.
  void replace(Tensor& tensor, std::vector<float> values, std::array<std::uint64_t, 2> dims) {
    const auto owned = std::make_shared<const std::vector<float>>(std::move(values));
    Tensor plain;
    plain.name = tensor.name;
    plain.n_dims = dims[1] == 1 ? 1 : 2;
    plain.dims = {dims[0], dims[1], 1, 1};
    plain.data = std::as_bytes(std::span(*owned));
    tensor = plain;
    checkpoint_.owned.push_back(owned);
  }

  Checkpoint& checkpoint_;
  const Heads& heads_;
};

// Renumbers the rotations that are still used.
void drop_unused_rotations(Checkpoint& checkpoint) {
  std::vector<format::Rotation> used;
  for (std::uint32_t old = 0; old < checkpoint.rotations.size(); ++old) {
    const auto now = static_cast<std::uint32_t>(used.size());
    bool found = false;
    for (Tensor& tensor : checkpoint.tensors) {
      if (tensor.rotation != old) continue;
      tensor.rotation = now;
      found = true;
    }
    if (found) used.push_back(std::move(checkpoint.rotations[old]));
  }
  checkpoint.rotations = std::move(used);
}

// A file without its prediction layers may count the trunk alone: the last nextn layers are then
// layers of the trunk.
Result<std::uint64_t> first_prediction_layer(const Checkpoint& checkpoint, std::uint64_t n_layers,
                                             std::uint64_t nextn) {
  std::set<std::uint64_t> predicting, trunk;
  for (const Tensor& tensor : checkpoint.tensors) {
    const auto name = parse_layer_name(tensor.name);
    if (!name || name->layer < n_layers - nextn || name->layer >= n_layers) continue;
    if (name->part.starts_with("nextn.")) predicting.insert(name->layer);
    if (name->part == "attn_norm.weight") trunk.insert(name->layer);
  }
  for (const std::uint64_t layer : predicting) trunk.erase(layer);
  if (trunk.empty()) return n_layers - nextn;
  if (predicting.empty() && trunk.contains(n_layers - 1)) return n_layers;
  return errorf(ErrorCode::damaged,
                "key 'qwen35.nextn_predict_layers' is %" PRIu64 " of %" PRIu64
                " layers, but layer %" PRIu64 " has no 'nextn.*', expected a prediction layer",
                nextn, n_layers, *trunk.begin());
}

}  // namespace

Result<void> drop_nextn_layers(Checkpoint& checkpoint) {
  constexpr char kNextn[] = "qwen35.nextn_predict_layers";
  if (!is_qwen35(checkpoint) || !checkpoint.metadata.find(kNextn)) return {};
  const auto nextn = checkpoint.metadata.require_u64(kNextn);
  if (!nextn) return nextn.error();
  if (*nextn == 0) return {};
  const auto layers = checkpoint.metadata.require_u64("qwen35.block_count");
  if (!layers) return layers.error();
  if (*nextn >= *layers) {
    return errorf(ErrorCode::damaged,
                  "key '%s' is %" PRIu64 ", expected fewer than 'qwen35.block_count', %" PRIu64,
                  kNextn, *nextn, *layers);
  }
  const auto first = first_prediction_layer(checkpoint, *layers, *nextn);
  if (!first) return first.error();
  const std::size_t dropped = std::erase_if(checkpoint.tensors, [&](const Tensor& tensor) {
    const auto name = parse_layer_name(tensor.name);
    return name && name->layer >= *first;
  });
  if (dropped == 0) return {};
  drop_unused_rotations(checkpoint);
  checkpoint.warnings.push_back(
      stringf("%zu tensors of multi-token prediction are left out (layers from %" PRIu64
              " on): tsq predicts one token at a time",
              dropped, *first));
  return {};
}

Result<void> group_value_heads(Checkpoint& checkpoint) {
  if (!is_qwen35(checkpoint)) return {};
  std::optional<Heads> heads;
  for (Tensor& tensor : checkpoint.tensors) {
    const auto name = parse_layer_name(tensor.name);
    if (!name || (name->part != "attn_qkv.weight" && name->part != "attn_gate.weight" &&
                  !name->part.starts_with("ssm_"))) {
      continue;
    }
    if (!heads) {
      const auto read = read_heads(checkpoint.metadata);
      if (!read) return read.error();
      heads = *read;
    }
    if (const auto done = Grouper(checkpoint, *heads).group(tensor, name->part); !done) return done;
  }
  return {};
}

}  // namespace tsq::importer
