// qwen3: like llama, with an RMSNorm over each head of q and k before rotary positions on the two
// halves of a head. Qwen3 dense, Ternary-Bonsai 1.7B, 4B and 8B.
#include "arch/decoder.h"

namespace tsq {
namespace {

class Qwen3 final : public Decoder {
 public:
  Qwen3(Config config, Binder& binder) : Decoder(std::move(config), binder) {
    config_.rope.neox = true;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      bind_attention(binder, i, config_.head_dim);
      const std::string prefix = "blk." + std::to_string(i) + ".";
      layers_[i].q_norm = binder.vector(prefix + "attn_q_norm.weight", config_.head_dim);
      layers_[i].k_norm = binder.vector(prefix + "attn_k_norm.weight", config_.head_dim);
    }
  }

 private:
  void attend(Backend& b, const DecoderLayer& w, std::size_t layer, const Batch& batch,
              DecoderState& s) const override {
    b.rms_norm(s.x, w.attention_norm, config_.rms_eps, batch.size(), s.h);
    b.project(w.qkv, s.h, batch.size(), {s.q, s.k, s.v});
    b.rms_norm_heads(w.q_norm, config_.rms_eps, batch.size(), s.q);
    b.rms_norm_heads(w.k_norm, config_.rms_eps, batch.size(), s.k);
    b.rope(config_.rope, batch, config_.head_dim, s.q);
    b.rope(config_.rope, batch, config_.head_dim, s.k);
    b.append(s.k, s.v, batch, s.kv, layer);
    b.attention(s.q, batch, s.kv, layer, config_.n_heads, config_.attention_scale(), s.attended);
    b.project(w.attention_output, s.attended, batch.size(), {s.x}, Epilogue::add);
  }
};

}  // namespace

Result<std::unique_ptr<Graph>> make_qwen3(const format::File& file, const WeightHook& hook) {
  return make_decoder<Qwen3>(file, hook, "qwen3");
}

}  // namespace tsq
