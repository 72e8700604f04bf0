// llama: RMSNorm, grouped-query attention with rotary positions on adjacent pairs (GGUF converters
// permute the rows of q and k so), SwiGLU. TriLM, SmolLM2, Llama 1 to 3.
#include "arch/decoder.h"
#include "base/errorf.h"

namespace tsq {
namespace {

class Llama final : public Decoder {
 public:
  Llama(Config config, Binder& binder) : Decoder(std::move(config), binder) {
    // Llama 3's position scaling: a divisor for each frequency.
    if (binder.has("rope_freqs.weight")) {
      const VectorWeight divisors =
          binder.vector("rope_freqs.weight", config_.rope.frequencies.size());
      for (std::size_t i = 0; i < divisors.values.size(); ++i) {
        config_.rope.frequencies[i] /= static_cast<double>(divisors.values[i]);
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

Result<std::unique_ptr<Graph>> make_llama(const format::File& file) {
  auto config = read_decoder_config(file, "llama");
  if (!config) return config.error();
  Binder binder(file);
  std::unique_ptr<Graph> graph = std::make_unique<Llama>(std::move(*config), binder);
  if (const auto bound = binder.finish(); !bound) return bound.error();
  return graph;
}

}  // namespace tsq
