#include "import/hf_tensors.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>

#include "base/errorf.h"
#include "format/sections.h"
#include "import/block_codecs.h"
#include "import/blocks.h"

namespace tsq::importer {
namespace {

constexpr std::string_view kScale = "_scale";  // weight_scale belongs to weight

std::optional<SourceType> dense_type(std::string_view dtype) {
  if (dtype == "F32") return SourceType::f32;
  if (dtype == "F16") return SourceType::f16;
  if (dtype == "BF16") return SourceType::bf16;
  return std::nullopt;
}

std::string shown(const SafeTensor& tensor) { return printable(tensor.name); }

// Buffers that older versions of transformers saved.
bool is_computed(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

// The tensors of Qwen 3.5 that are not of its model for text.
struct LeftOut {
  const char *prefix, *what, *why;
  std::size_t count = 0;
};

class Tensors {
 public:
  Tensors(const HfConfig& model, Checkpoint& checkpoint) : model_(model), checkpoint_(checkpoint) {}

  Result<void> add(const SafeTensor& source) {
    if (is_computed(source.name) || leave_out(source.name)) return {};
    const bool is_scale = source.name.ends_with(".weight_scale");
    std::string_view plain = source.name;
    if (is_scale) plain.remove_suffix(kScale.size());
    auto name = gguf_name(*model_.family, model_.n_layers, plain);
    if (!name) {
      return errorf(ErrorCode::unsupported,
                    "tensor '%s' has no place in a %s of %" PRIu64 " layers", shown(source).c_str(),
                    std::string(model_.family->model_type).c_str(), model_.n_layers);
    }
    auto& known = is_scale ? scales_ : weights_;
    if (known.size() == format::kMaxTensors) {
      return errorf(ErrorCode::unsupported, "the model has more than %" PRIu64 " tensors",
                    format::kMaxTensors);
    }
    if (!known.emplace(*name, source).second) {
      return errorf(ErrorCode::damaged, "tensor '%s' is in two files, names are unique",
                    shown(source).c_str());
    }
    if (is_scale) return {};
    return add_weight(source, std::move(*name));
  }

  // What can be said once all are there.
  Result<void> finish() {
    if (const auto scaled = set_scales(); !scaled) return scaled;
    if (const auto head = check_head(); !head) return head;
    add_rope_divisors();
    for (const LeftOut& part : left_out_) {
      if (part.count == 0) continue;
      checkpoint_.warnings.push_back(
          stringf("%zu tensors of %s are left out: tsq %s", part.count, part.what, part.why));
    }
    checkpoint_.owned.push_back(names_);
    return {};
  }

 private:
  bool leave_out(std::string_view name) {
    if (!model_.family->gated_delta_net) return false;
    for (LeftOut& part : left_out_) {
      if (!name.starts_with(part.prefix)) continue;
      ++part.count;
      return true;
    }
    return false;
  }

  Result<void> add_weight(const SafeTensor& source, std::string name) {
    Tensor tensor;
    const bool packed = source.dtype == "U8" && model_.packed != PackedScale::none;
    const auto type = packed ? SourceType::packed_u8 : dense_type(source.dtype);
    if (!type) {
      return errorf(ErrorCode::unsupported, "tensor '%s' is %s, tsq imports F32 F16 BF16%s",
                    shown(source).c_str(), std::string(source.dtype).c_str(),
                    model_.packed == PackedScale::none
                        ? ", and packed U8 where config.json has quantization_config 'bitnet'"
                        : " and packed U8");
    }
    tensor.type = *type;
    // What these layers were trained with.
    if (packed) tensor.activation_quant = format::ActivationQuant::per_token;
    if (const auto shaped = set_shape(source, tensor); !shaped) return shaped;
    tensor.data = source.data;
    if (model_.family->gated_delta_net) {
      if (const auto set = set_values(source, name, tensor); !set) return set;
    }
    if (const auto ordered = set_row_order(source, name, tensor); !ordered) return ordered;
    if (model_.tied_head && name == "output.weight") return {};
    tensor.name = names_->emplace_back(std::move(name));
    checkpoint_.tensors.push_back(tensor);
    return {};
  }

  Result<void> set_shape(const SafeTensor& source, Tensor& tensor) const {
    // A convolution of one channel each: [channels, 1, taps].
    const bool taps = model_.family->gated_delta_net && source.n_dims == 3 && source.shape[1] == 1;
    if (source.n_dims != 1 && source.n_dims != 2 && !taps) {
      return errorf(ErrorCode::damaged, "tensor '%s' has %u dims, expected a vector or a matrix",
                    shown(source).c_str(), source.n_dims);
    }
    if (source.values() == 0) {
      return errorf(ErrorCode::damaged, "tensor '%s' is empty, expected at least one value",
                    shown(source).c_str());
    }
    tensor.n_dims = source.n_dims;
    for (std::uint32_t i = 0; i < source.n_dims; ++i) {
      tensor.dims[i] = source.shape[source.n_dims - 1 - i];
    }
    if (taps) {
      tensor.n_dims = 2;
      tensor.dims = {source.shape[2], source.shape[0], 1, 1};
    }
    if (tensor.type != SourceType::packed_u8) return {};
    const std::uint32_t group = scale_group(tensor);
    if (source.n_dims != 2 || tensor.dims[0] % group != 0) {
      return errorf(ErrorCode::unsupported,
                    "tensor '%s': %" PRIu64
                    " inputs a row of a packed matrix, expected a multiple "
                    "of %u",
                    shown(source).c_str(), tensor.dims[0], group);
    }
    tensor.dims[1] *= 4;  // its bytes are in memory, so this does not wrap
    return {};
  }

  // What Qwen 3.5 makes of a stored value first: norms multiply by 1 + w, decay is -exp(A_log). The
  // taps of a convolution are turned: a row holds one of every channel.
  Result<void> set_values(const SafeTensor& source, std::string_view name, Tensor& tensor) {
    const bool vector = tensor.n_dims == 1;
    const bool taps = !vector && name.ends_with(".ssm_conv1d.weight");
    const bool decay = vector && name.ends_with(".ssm_a");
    const bool norm =
        vector && name.ends_with("norm.weight") && !name.ends_with(".ssm_norm.weight");
    if (!norm && !taps && !decay) return {};
    if (tensor.type == SourceType::packed_u8) {
      return errorf(ErrorCode::unsupported, "tensor '%s' is packed U8, expected F32, F16 or BF16",
                    shown(source).c_str());
    }
    if (taps && tensor.cols() != model_.conv_taps) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s' has %" PRIu64 " taps, expected %" PRIu64
                    ", linear_conv_kernel_dim of config.json",
                    shown(source).c_str(), tensor.cols(), model_.conv_taps);
    }
    const auto rows = static_cast<std::size_t>(tensor.rows());
    const auto cols = static_cast<std::size_t>(tensor.cols());
    std::vector<float> row(cols), values(rows * cols);
    for (std::size_t r = 0; r < rows; ++r) {
      decode_row(tensor, r, row.data());
      for (std::size_t c = 0; c < cols; ++c) {
        values[c * rows + r] = norm ? 1 + row[c] : decay ? -std::exp(row[c]) : row[c];
      }
    }
    if (taps) std::swap(tensor.dims[0], tensor.dims[1]);
    const auto owned = std::make_shared<const std::vector<float>>(std::move(values));
    tensor.type = SourceType::f32;
    tensor.data = std::as_bytes(std::span(*owned));
    checkpoint_.owned.push_back(owned);
    return {};
  }

  Result<void> set_row_order(const SafeTensor& source, std::string_view name,
                             Tensor& tensor) const {
    const bool is_q = name.ends_with(".attn_q.weight"), is_k = name.ends_with(".attn_k.weight");
    if (!model_.family->pairs || (!is_q && !is_k)) return {};
    const std::uint64_t rows = (is_q ? model_.n_heads : model_.n_kv_heads) * model_.head_dim;
    if (tensor.n_dims != 2 || tensor.dims[1] != rows) {
      return errorf(ErrorCode::damaged,
                    "tensor '%s' has %" PRIu64 " rows, expected %" PRIu64
                    ", those of its heads by config.json",
                    shown(source).c_str(), tensor.dims[1], rows);
    }
    tensor.head_rows = static_cast<std::uint32_t>(model_.head_dim);
    return {};
  }

  Result<void> set_scales() {
    std::size_t used = 0, inexact = 0;
    for (Tensor& tensor : checkpoint_.tensors) {
      if (tensor.type != SourceType::packed_u8) continue;
      const auto found = scales_.find(tensor.name);
      if (found == scales_.end()) {
        return errorf(ErrorCode::damaged, "tensor '%s%.*s' is missing, the packed weights need it",
                      shown(weights_.find(tensor.name)->second).c_str(),
                      static_cast<int>(kScale.size()), kScale.data());
      }
      const auto scale = read_scale(found->second);
      if (!scale) return scale.error();
      tensor.scale = *scale;
      if (model_.packed == PackedScale::divides) {
        tensor.scale = 1 / *scale;
        // The remainder is exact: in f64 the product of two f32 is.
        if (static_cast<double>(tensor.scale) * static_cast<double>(*scale) != 1) ++inexact;
      }
      ++used;
    }
    if (inexact > 0) {
      checkpoint_.warnings.push_back(
          stringf("%zu matrices are divided by their weight_scale: its reciprocal is stored, "
                  "rounded to the nearest f32",
                  inexact));
    }
    if (used == scales_.size()) return {};
    for (const auto& [name, scale] : scales_) {
      const auto weight = weights_.find(name);
      if (weight != weights_.end() && weight->second.dtype == "U8") continue;
      return errorf(ErrorCode::damaged, "tensor '%s' has no packed U8 weights beside it",
                    shown(scale).c_str());
    }
    return {};
  }

  static Result<float> read_scale(const SafeTensor& source) {
    const auto type = dense_type(source.dtype);
    float value = 0;
    if (type && source.values() == 1) decode_dense_block(*type, source.data.data(), &value);
    if (std::isnormal(value) && std::isnormal(1 / value)) return value;
    return errorf(ErrorCode::damaged,
                  "tensor '%s' is %" PRIu64
                  " values of %s, the first %g, expected one number of "
                  "F32 F16 BF16 that is not 0",
                  shown(source).c_str(), source.values(), std::string(source.dtype).c_str(),
                  static_cast<double>(value));
  }

  Result<void> check_head() const {
    const auto head = weights_.find("output.weight");
    const auto embedding = weights_.find("token_embd.weight");
    if (!model_.tied_head && head == weights_.end()) {
      return errorf(ErrorCode::damaged,
                    "tensor 'lm_head.weight' is missing, and 'tie_word_embeddings' is not true");
    }
    if (!model_.tied_head || head == weights_.end() || embedding == weights_.end()) return {};
    const SafeTensor &a = head->second, &b = embedding->second;
    if (a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.data, b.data)) return {};
    return errorf(ErrorCode::damaged,
                  "'tie_word_embeddings' is true, but tensor 'lm_head.weight' is not equal to "
                  "'model.embed_tokens.weight'");
  }

  void add_rope_divisors() {
    if (model_.rope_divisors.empty()) return;
    const auto values = std::make_shared<const std::vector<float>>(model_.rope_divisors);
    Tensor tensor;
    tensor.name = "rope_freqs.weight";
    tensor.n_dims = 1;
    tensor.dims[0] = values->size();
    tensor.data = std::as_bytes(std::span(*values));
    checkpoint_.tensors.push_back(tensor);
    checkpoint_.owned.push_back(values);
  }

  const HfConfig& model_;
  Checkpoint& checkpoint_;
  std::shared_ptr<std::deque<std::string>> names_ = std::make_shared<std::deque<std::string>>();
  std::map<std::string, SafeTensor, std::less<>> weights_, scales_;  // by name in GGUF
  LeftOut left_out_[2] = {{"model.visual.", "the vision tower", "reads text"},
                          {"mtp.", "multi-token prediction", "predicts one token at a time"}};
};

}  // namespace

Result<void> add_hf_tensors(std::span<const Safetensors> files, const HfConfig& model,
                            Checkpoint& checkpoint) {
  Tensors tensors(model, checkpoint);
  for (const Safetensors& file : files) {
    for (const SafeTensor& tensor : file.tensors) {
      if (const auto added = tensors.add(tensor); !added) return added;
    }
  }
  return tensors.finish();
}

}  // namespace tsq::importer
