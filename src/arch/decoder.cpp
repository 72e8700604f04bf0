#include "arch/decoder.h"

namespace tsq {

Decoder::Decoder(Config config, Binder& binder, const char* ffn_norm) : Graph(std::move(config)) {
  const Config& c = config_;
  const bool tied = !binder.has("output.weight");  // the embedding is read in both directions
  embedding_ = tied ? binder.matrix("token_embd.weight", c.vocab, c.hidden)
                    : binder.table("token_embd.weight", c.vocab, c.hidden);
  output_norm_ = binder.vector("output_norm.weight", c.hidden);
  head_ = {tied ? embedding_ : binder.matrix("output.weight", c.vocab, c.hidden)};
  for (std::size_t i = 0; i < c.n_layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    DecoderLayer w;
    w.attention_norm = binder.vector(prefix + "attn_norm.weight", c.hidden);
    w.ffn_norm = binder.vector(prefix + ffn_norm + ".weight", c.hidden);
    w.gate_up = {binder.matrix(prefix + "ffn_gate.weight", c.ffn, c.hidden),
                 binder.matrix(prefix + "ffn_up.weight", c.ffn, c.hidden)};
    w.down = {binder.matrix(prefix + "ffn_down.weight", c.hidden, c.ffn)};
    layers_.push_back(std::move(w));
  }
}

void Decoder::bind_attention(Binder& binder, std::size_t i, std::size_t q_rows) {
  const Config& c = config_;
  const std::string prefix = "blk." + std::to_string(i) + ".";
  const std::size_t kv = c.n_kv_heads * c.head_dim;
  DecoderLayer& w = layers_[i];
  w.qkv = {binder.matrix(prefix + "attn_q.weight", c.n_heads * q_rows, c.hidden),
           binder.matrix(prefix + "attn_k.weight", kv, c.hidden),
           binder.matrix(prefix + "attn_v.weight", kv, c.hidden)};
  w.attention_output = {
      binder.matrix(prefix + "attn_output.weight", c.hidden, c.n_heads * c.head_dim)};
}

std::unique_ptr<GraphState> Decoder::new_state(Backend& backend, std::size_t max_tokens,
                                               std::size_t context) const {
  auto state = std::make_unique<DecoderState>();
  make_tensors(backend, max_tokens, context, *state);
  return state;
}

void Decoder::make_tensors(Backend& backend, std::size_t max_tokens, std::size_t context,
                           DecoderState& state) const {
  const Config& c = config_;
  state.x = backend.new_tensor(max_tokens, c.hidden);
  state.h = backend.new_tensor(max_tokens, c.hidden);
  state.q = backend.new_tensor(max_tokens, c.n_heads * c.head_dim);
  state.k = backend.new_tensor(max_tokens, c.n_kv_heads * c.head_dim);
  state.v = backend.new_tensor(max_tokens, c.n_kv_heads * c.head_dim);
  state.attended = backend.new_tensor(max_tokens, c.n_heads * c.head_dim);
  state.ffn = backend.new_tensor(max_tokens, c.ffn);
  state.rows = backend.new_tensor(kMaxLogitRows, c.hidden);
  state.logits = backend.new_tensor(kMaxLogitRows, c.vocab);
  state.kv = backend.new_kv_cache(c.kv_shape(context));
  for (const DecoderLayer& w : layers_) {
    backend.reserve(w.qkv, max_tokens, Epilogue::none);
    backend.reserve(w.attention_output, max_tokens, Epilogue::add);
    backend.reserve(w.gate_up, max_tokens, Epilogue::silu_mul);
    backend.reserve(w.down, max_tokens, Epilogue::add);
  }
  backend.reserve(head_, kMaxLogitRows, Epilogue::none);
}

void Decoder::forward(Backend& b, GraphState& state, const Batch& batch) const {
  auto& s = static_cast<DecoderState&>(state);
  b.begin(batch);
  b.embed(embedding_, batch, s.x);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    attend(b, layers_[i], i, batch, s);
    feed_forward(b, layers_[i], batch, s);
  }
}

void Decoder::feed_forward(Backend& b, const DecoderLayer& w, const Batch& batch,
                           DecoderState& s) const {
  b.rms_norm(s.x, w.ffn_norm, config_.rms_eps, batch.size(), s.h);
  b.project(w.gate_up, s.h, batch.size(), {s.ffn}, Epilogue::silu_mul);  // silu(gate h) * (up h)
  b.project(w.down, s.ffn, batch.size(), {s.x}, Epilogue::add);          // x += down ffn
}

std::vector<std::byte> Decoder::save(Backend& b, GraphState& state, std::size_t n) const {
  return b.save(static_cast<DecoderState&>(state).kv, 0, n);
}

void Decoder::restore(Backend& b, GraphState& state, std::size_t n,
                      std::span<const std::byte> saved) const {
  b.restore(static_cast<DecoderState&>(state).kv, 0, n, saved);
}

Tensor Decoder::logits(Backend& b, GraphState& state, std::span<const std::int32_t> rows) const {
  auto& s = static_cast<DecoderState&>(state);
  b.gather(s.x, rows, s.rows);
  b.rms_norm(s.rows, output_norm_, config_.rms_eps, rows.size(), s.rows);
  b.project(head_, s.rows, rows.size(), {s.logits});
  return s.logits;
}

}  // namespace tsq
