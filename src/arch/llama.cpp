// llama: RMSNorm, grouped-query attention with rotary positions on adjacent pairs (GGUF converters
// permute the rows of q and k so), SwiGLU. TriLM, SmolLM2, Llama 1 to 3.
#include "arch/decoder.h"
#include "base/errorf.h"

namespace tsq {
namespace {

// With positions up to kMaxContext, angles stay below the 2^30 that rope_angles() is made for.
constexpr float kLeastDivisor = 1.0f / 64;

class Llama final : public Decoder {
 public:
  Llama(Config config, Binder& binder) : Decoder(std::move(config), binder) {
    for (std::size_t i = 0; i < layers_.size(); ++i) bind_attention(binder, i, config_.head_dim);
    // Llama 3's position scaling: a divisor for each frequency.
    if (binder.has("rope_freqs.weight")) {
      const VectorWeight divisors =
          binder.vector("rope_freqs.weight", config_.rope.frequencies.size());
      for (std::size_t i = 0; i < divisors.values.size(); ++i) {
        const float divisor = divisors.values[i];
        if (!(divisor >= kLeastDivisor && divisor <= 1e9f)) {
          binder.fail(errorf(ErrorCode::damaged,
                             "tensor 'rope_freqs.weight': value %zu is %g, expected %g to 1e9", i,
                             static_cast<double>(divisor), static_cast<double>(kLeastDivisor)));
          break;
        }
        config_.rope.frequencies[i] /= static_cast<double>(divisor);
      }
    }
  }

 private:
  void attend(Backend& b, const DecoderLayer& w, std::size_t layer, const Batch& batch,
              DecoderState& s) const override {
    b.rms_norm(s.x, w.attention_norm, config_.rms_eps, batch.size(), s.h);
    b.project(w.qkv, s.h, batch.size(), {s.q, s.k, s.v});
    b.rope(config_.rope, batch, config_.head_dim, s.q);
    b.rope(config_.rope, batch, config_.head_dim, s.k);
    b.append(s.k, s.v, batch, s.kv, layer);
    b.attention(s.q, batch, s.kv, layer, config_.n_heads, config_.attention_scale(), s.attended);
    b.project(w.attention_output, s.attended, batch.size(), {s.x}, Epilogue::add);
  }
};

}  // namespace

Result<std::unique_ptr<Graph>> make_llama(const format::File& file, const WeightHook& hook) {
  return make_decoder<Llama>(file, hook, "llama");
}

}  // namespace tsq
