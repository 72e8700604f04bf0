// qwen35: a hybrid. Every fourth layer (full_attention_interval) attends, with a sigmoid gate on
// its output and rotary positions on a part of each head; the others are gated DeltaNet (Yang et
// al., arXiv 2412.06464). Qwen3.5 to 3.8 dense, Ternary-Bonsai 27B.
#include <algorithm>
#include <cinttypes>

#include "arch/decoder.h"
#include "arch/key_reader.h"
#include "base/errorf.h"
#include "kernels/kernels.h"

namespace tsq {
namespace {

struct DeltaLayer {
  ProjectionGroup input;  // qkv, z, beta, alpha
  Weight taps;
  DeltaGates gates;
  VectorWeight norm;
  ProjectionGroup output;
};

struct Qwen35State : DecoderState {
  Tensor q_gate;       // [tokens, n_heads * 2 * head_dim]: q and gate of each head
  Tensor gate;         // [tokens, n_heads * head_dim]
  Tensor qkv;          // [tokens, channels] of a recurrent layer
  Tensor z, o;         // [tokens, value heads * value_dim]
  Tensor beta, alpha;  // [tokens, value heads]
  RecurrentState recurrent;
};

class Qwen35 final : public Decoder {
 public:
  // is_recurrent: of each layer.
  Qwen35(Config config, const std::vector<bool>& is_recurrent, Binder& binder)
      : Decoder(std::move(config), binder, "post_attention_norm") {
    config_.rope.neox = true;
    std::size_t n_attention = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::string prefix = "blk." + std::to_string(i) + ".";
      if (is_recurrent[i]) {
        kinds_.push_back({true, delta_layers_.size()});
        delta_layers_.push_back(bind_delta(binder, prefix));
      } else {
        kinds_.push_back({false, n_attention++});
        bind_attention(binder, i, 2 * config_.head_dim);
        layers_[i].q_norm = binder.vector(prefix + "attn_q_norm.weight", config_.head_dim);
        layers_[i].k_norm = binder.vector(prefix + "attn_k_norm.weight", config_.head_dim);
      }
    }
  }

  std::unique_ptr<GraphState> new_state(Backend& backend, std::size_t max_tokens,
                                        std::size_t context) const override {
    const RecurrentShape& r = config_.recurrent;
    const std::size_t attended = config_.n_heads * config_.head_dim;
    const std::size_t values = r.n_heads * r.value_dim;
    auto s = std::make_unique<Qwen35State>();
    make_tensors(backend, max_tokens, context, *s);
    s->q_gate = backend.new_tensor(max_tokens, 2 * attended);
    s->gate = backend.new_tensor(max_tokens, attended);
    s->qkv = backend.new_tensor(max_tokens, r.channels());
    // The two kinds of layers take turns: one pair of tensors serves both where it fits.
    s->z = values == attended ? s->gate : backend.new_tensor(max_tokens, values);
    s->o = values == attended ? s->attended : backend.new_tensor(max_tokens, values);
    s->beta = backend.new_tensor(max_tokens, r.n_heads);
    s->alpha = backend.new_tensor(max_tokens, r.n_heads);
    s->recurrent = backend.new_recurrent_state(r);
    for (const DeltaLayer& w : delta_layers_) {
      backend.reserve(w.input, max_tokens, Epilogue::none);
      backend.reserve(w.output, max_tokens, Epilogue::add);
    }
    return s;
  }

  std::vector<std::byte> save_recurrent(Backend& b, GraphState& state) const override {
    return b.save(static_cast<Qwen35State&>(state).recurrent, 0);
  }
  void restore_recurrent(Backend& b, GraphState& state,
                         std::span<const std::byte> saved) const override {
    b.restore(static_cast<Qwen35State&>(state).recurrent, 0, saved);
  }

 private:
  struct Kind {
    bool is_recurrent;
    std::size_t index;  // among the layers of its kind
  };

  DeltaLayer bind_delta(Binder& binder, const std::string& prefix) const {
    const Config& c = config_;
    const RecurrentShape& r = c.recurrent;
    const std::size_t values = r.n_heads * r.value_dim;
    DeltaLayer w;
    w.input = {binder.matrix(prefix + "attn_qkv.weight", r.channels(), c.hidden),
               binder.matrix(prefix + "attn_gate.weight", values, c.hidden),
               binder.matrix(prefix + "ssm_beta.weight", r.n_heads, c.hidden),
               binder.matrix(prefix + "ssm_alpha.weight", r.n_heads, c.hidden)};
    w.taps = binder.matrix(prefix + "ssm_conv1d.weight", kernels::kConvTaps, r.channels());
    if (w.taps.shape.encoding != format::Encoding::f32 || w.taps.rotation != nullptr) {
      binder.fail(errorf(ErrorCode::unsupported, "tensor '%s' is %s%s, expected plain f32",
                         w.taps.name.c_str(), format::encoding_name(w.taps.shape.encoding),
                         w.taps.rotation == nullptr ? "" : " and rotated"));
    }
    w.gates = {.rate = binder.vector(prefix + "ssm_a", r.n_heads),
               .bias = binder.vector(prefix + "ssm_dt.bias", r.n_heads)};
    w.norm = binder.vector(prefix + "ssm_norm.weight", r.value_dim);
    w.output = {binder.matrix(prefix + "ssm_out.weight", c.hidden, values)};
    return w;
  }

  void attend(Backend& b, const DecoderLayer& w, std::size_t layer, const Batch& batch,
              DecoderState& state) const override {
    auto& s = static_cast<Qwen35State&>(state);
    b.rms_norm(s.x, w.attention_norm, config_.rms_eps, batch.size(), s.h);
    const auto [is_recurrent, index] = kinds_[layer];
    if (is_recurrent) return recur(b, delta_layers_[index], index, batch, s);
    b.project(w.qkv, s.h, batch.size(), {s.q_gate, s.k, s.v});
    b.split_heads(s.q_gate, config_.head_dim, batch.size(), s.q, s.gate);
    b.rms_norm_heads(w.q_norm, config_.rms_eps, batch.size(), s.q);
    b.rms_norm_heads(w.k_norm, config_.rms_eps, batch.size(), s.k);
    b.rope(config_.rope, batch, config_.head_dim, s.q);
    b.rope(config_.rope, batch, config_.head_dim, s.k);
    b.append(s.k, s.v, batch, s.kv, index);
    b.attention(s.q, batch, s.kv, index, config_.n_heads, config_.attention_scale(), s.attended);
    b.gate(Gate::sigmoid, s.gate, batch.size(), s.attended);
    b.project(w.attention_output, s.attended, batch.size(), {s.x}, Epilogue::add);
  }

  void recur(Backend& b, const DeltaLayer& w, std::size_t index, const Batch& batch,
             Qwen35State& s) const {
    b.project(w.input, s.h, batch.size(), {s.qkv, s.z, s.beta, s.alpha});
    b.causal_conv(w.taps, batch, s.recurrent, index, s.qkv);
    b.delta_net(s.qkv, s.alpha, s.beta, w.gates, batch, s.recurrent, index, s.o);
    b.rms_norm_heads(w.norm, config_.rms_eps, batch.size(), s.o);
    b.gate(Gate::silu, s.z, batch.size(), s.o);
    b.project(w.output, s.o, batch.size(), {s.x}, Epilogue::add);
  }

  std::vector<Kind> kinds_;
  std::vector<DeltaLayer> delta_layers_;
};

// Layers that predict further tokens lie behind the trunk. block_count counts them, also where the
// file has them no more.
std::size_t trunk_layers(KeyReader& keys, const format::File& file, std::size_t block_count) {
  const std::size_t extra = keys.size_or("nextn_predict_layers", 0, block_count - 1, 0);
  const std::string last = "blk." + std::to_string(block_count - 1) + ".";
  const bool is_trunk = file.find(last + "attn_norm.weight") != nullptr &&
                        file.find(last + "nextn.eh_proj.weight") == nullptr;
  return is_trunk ? block_count : block_count - extra;
}

// Of each layer, whether it is recurrent.
std::vector<bool> read_kinds(KeyReader& keys, const Metadata& metadata, std::size_t n_layers) {
  std::vector<bool> kinds(n_layers);
  const std::string key = keys.prefix() + "attention.recurrent_layers";
  if (const Value* const list = metadata.find(key)) {
    const auto flags = list->as_bools();
    if (!flags || flags->size() < n_layers) {
      const bool is_list = list->type() == ValueType::array;
      const char* const type = value_type_name(is_list ? list->element_type() : list->type());
      const std::string found = is_list ? stringf("%" PRIu64 " x %s", list->count(), type) : type;
      keys.fail(errorf(ErrorCode::damaged,
                       "metadata '%s' is %s, expected a bool for each of %zu layers", key.c_str(),
                       found.c_str(), n_layers));
      return kinds;
    }
    std::copy_n(flags->begin(), n_layers, kinds.begin());
  } else {
    const std::size_t interval = keys.size_or("full_attention_interval", 1, 4096, 4);
    for (std::size_t i = 0; i < n_layers; ++i) kinds[i] = (i + 1) % interval != 0;
  }
  for (const bool kind : {false, true}) {
    if (std::ranges::find(kinds, kind) != kinds.end()) continue;
    keys.fail(errorf(ErrorCode::unsupported,
                     "none of the %zu layers %s, tsq's graph for qwen35 has both kinds", n_layers,
                     kind ? "is recurrent" : "attends"));
  }
  return kinds;
}

RecurrentShape read_recurrent(KeyReader& keys) {
  RecurrentShape shape;
  const auto refuse = [&](const char* key, std::size_t found, const char* expected) {
    keys.fail(errorf(ErrorCode::unsupported, "metadata '%s%s' is %zu, tsq has %s",
                     keys.prefix().c_str(), key, found, expected));
  };
  if (const std::size_t taps = keys.size("ssm.conv_kernel", 1, 1024); taps != kernels::kConvTaps) {
    refuse("ssm.conv_kernel", taps, "4");
  }
  shape.key_dim = keys.size("ssm.state_size", 1, 1024);
  if (shape.key_dim % kernels::kLanes != 0) {
    refuse("ssm.state_size", shape.key_dim, "multiples of 16");
  }
  shape.n_key_heads = keys.size("ssm.group_count", 1, 1 << 14);
  shape.n_heads = keys.size("ssm.time_step_rank", 1, 1 << 14);
  const std::size_t values = keys.size("ssm.inner_size", 1, 1 << 24);
  const auto divides = [&](const char* key, std::size_t value, std::size_t divisor) {
    if (value % divisor == 0) return;
    keys.fail(errorf(ErrorCode::damaged, "metadata '%s%s' is %zu, expected a multiple of %zu",
                     keys.prefix().c_str(), key, value, divisor));
  };
  divides("ssm.time_step_rank", shape.n_heads, shape.n_key_heads);
  divides("ssm.inner_size", values, shape.n_heads);
  shape.value_dim = values / shape.n_heads;
  if (shape.value_dim > 1024) refuse("ssm.inner_size", values, "heads of at most 1024");
  return shape;
}

}  // namespace

Result<std::unique_ptr<Graph>> make_qwen35(const format::File& file, const WeightHook& hook) {
  auto config = read_decoder_config(file, "qwen35");
  if (!config) return config.error();
  KeyReader keys(file.metadata(), "qwen35.");
  config->n_layers = trunk_layers(keys, file, config->n_layers);
  const std::vector<bool> is_recurrent = read_kinds(keys, file.metadata(), config->n_layers);
  config->recurrent = read_recurrent(keys);
  if (keys.error()) return *keys.error();
  config->recurrent.n_layers = static_cast<std::size_t>(std::ranges::count(is_recurrent, true));
  config->n_kv_layers = config->n_layers - config->recurrent.n_layers;
  Binder binder(file, hook);
  std::unique_ptr<Graph> graph = std::make_unique<Qwen35>(std::move(*config), is_recurrent, binder);
  if (const auto bound = binder.finish(); !bound) return bound.error();
  return graph;
}

}  // namespace tsq
