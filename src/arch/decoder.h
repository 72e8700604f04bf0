// What the decoders share: sizes, the weights of a layer, its feed-forward half, embedding and
// head. An architecture adds the half that mixes tokens: attention, or what stands for it.
#pragma once

#include <memory>
#include <vector>

#include "arch/binder.h"
#include "arch/graph.h"

namespace tsq {

struct DecoderState : GraphState {
  Tensor x;             // [tokens, hidden], the residual stream
  Tensor h;             // [tokens, hidden], a norm's output
  Tensor q, k, v;       // [tokens, heads * head_dim]
  Tensor attended;      // [tokens, n_heads * head_dim]
  Tensor ffn;           // [tokens, ffn]
  Tensor rows, logits;  // [kMaxLogitRows, hidden], [kMaxLogitRows, vocab]
  KvCache kv;
};

struct DecoderLayer {
  VectorWeight attention_norm, ffn_norm;
  ProjectionGroup qkv, attention_output, gate_up, down;
  VectorWeight q_norm, k_norm;  // qwen3, qwen35
};

class Decoder : public Graph {
 public:
  std::unique_ptr<GraphState> new_state(Backend& backend, std::size_t max_tokens,
                                        std::size_t context) const override;
  void forward(Backend& b, GraphState& state, const Batch& batch) const override;
  std::vector<std::byte> save(Backend& b, GraphState& state, std::size_t n) const override;
  void restore(Backend& b, GraphState& state, std::size_t n,
               std::span<const std::byte> saved) const override;
  Tensor logits(Backend& b, GraphState& state, std::span<const std::int32_t> rows) const override;

 protected:
  // Binds what every decoder has; a derived graph binds the rest before finish(). ffn_norm: the
  // name of the norm before the feed-forward half.
  Decoder(Config config, Binder& binder, const char* ffn_norm = "ffn_norm");
  // The attention of layer i, with so many rows of q a head.
  void bind_attention(Binder& binder, std::size_t i, std::size_t q_rows);
  void make_tensors(Backend& backend, std::size_t max_tokens, std::size_t context,
                    DecoderState& state) const;

  // s.x += attention of the batch.
  virtual void attend(Backend& b, const DecoderLayer& w, std::size_t layer, const Batch& batch,
                      DecoderState& s) const = 0;
  void feed_forward(Backend& b, const DecoderLayer& w, const Batch& batch, DecoderState& s) const;

  std::vector<DecoderLayer> layers_;

 private:
  Weight embedding_;
  VectorWeight output_norm_;
  ProjectionGroup head_;
};

// The sizes under "<architecture>." in the metadata. Errors name the key.
Result<Config> read_decoder_config(const format::File& file, std::string_view architecture);

// Reads the configuration, binds the weights, refuses what is left over.
template <class DecoderGraph>
Result<std::unique_ptr<Graph>> make_decoder(const format::File& file, const WeightHook& hook,
                                            std::string_view architecture) {
  auto config = read_decoder_config(file, architecture);
  if (!config) return config.error();
  Binder binder(file, hook);
  std::unique_ptr<Graph> graph = std::make_unique<DecoderGraph>(std::move(*config), binder);
  if (const auto bound = binder.finish(); !bound) return bound.error();
  return graph;
}

// The graphs that registry.cpp lists, one file each.
Result<std::unique_ptr<Graph>> make_llama(const format::File& file, const WeightHook& hook);
Result<std::unique_ptr<Graph>> make_qwen3(const format::File& file, const WeightHook& hook);
Result<std::unique_ptr<Graph>> make_qwen35(const format::File& file, const WeightHook& hook);

}  // namespace tsq
