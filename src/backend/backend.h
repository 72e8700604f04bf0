// The operations that graphs are made of. A graph holds handles and never a pointer, so that the
// same graph runs on any backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "backend/weight.h"
#include "tsq/error.h"

namespace tsq {

// The tokens that one pass computes. One entry each; a token sees the positions up to its own of
// its own sequence.
struct Batch {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> positions;
  std::span<const std::int32_t> sequences;

  std::size_t size() const { return tokens.size(); }
};

// A backend-owned activation, f32 [tokens, width].
struct Tensor {
  std::uint32_t id;
};

// A backend-owned key/value cache of all layers and sequences.
struct KvCache {
  std::uint32_t id;
};

struct KvShape {
  std::size_t n_layers, n_sequences, context, n_kv_heads, head_dim;
};

// What recurrent layers keep of each sequence, however long it is.
struct RecurrentState {
  std::uint32_t id;
};

// Gated DeltaNet: value head h reads key head h / (n_heads / n_key_heads).
struct RecurrentShape {
  std::size_t n_layers = 0, n_sequences = 1;
  std::size_t n_key_heads = 0, n_heads = 0, key_dim = 0, value_dim = 0;

  // Of the convolution: q and k of the key heads, v of the others.
  std::size_t channels() const { return 2 * n_key_heads * key_dim + n_heads * value_dim; }
  // Floats of a layer and sequence: three inputs of the convolution, the heads' states.
  std::size_t history_size() const { return 3 * channels(); }
  std::size_t head_size() const { return value_dim * key_dim; }
  std::size_t layer_size() const { return history_size() + n_heads * head_size(); }
  std::uint64_t bytes() const { return 4 * n_layers * n_sequences * layer_size(); }
};

// decay = exp(rate * softplus(a + bias)), one of each a head.
struct DeltaGates {
  VectorWeight rate, bias;
};

enum class Gate : std::uint8_t { sigmoid, silu };

// Rotary position embedding: pair i of a head turns by position * frequency[i].
struct Rope {
  std::vector<double> frequencies;  // one a pair; the first 2 * pairs values of a head turn
  float magnitude = 1;              // cosines and sines are multiplied by it (YaRN)
  bool neox = false;                // pairs (i, i + pairs), else (2 i, 2 i + 1)
};

enum class Epilogue : std::uint8_t {
  none,
  add,       // output += W x
  silu_mul,  // two weights, one output: silu(W0 x) * (W1 x)
};

// Inputs first, output last. Errors (an activation that is not finite) stick until take_error(),
// and later operations of the pass do nothing of value.
class Backend {
 public:
  virtual ~Backend() = default;

  // A zeroed tensor with room for n_tokens; it lives as long as the backend.
  virtual Tensor new_tensor(std::size_t n_tokens, std::size_t width) = 0;
  virtual KvCache new_kv_cache(const KvShape& shape) = 0;
  virtual RecurrentState new_recurrent_state(const RecurrentShape& shape) = 0;
  // Takes the scratch that projecting up to n_tokens so will need.
  virtual void reserve(const ProjectionGroup& group, std::size_t n_tokens, Epilogue epilogue) = 0;

  // Before the first operation of a pass over this batch.
  virtual void begin(const Batch& batch) = 0;

  // out[t] = row tokens[t] of the table, un-rotated.
  virtual void embed(const Weight& table, const Batch& batch, Tensor out) = 0;
  // y = (x / rms(x)) * w over each token's whole width, n_tokens rows.
  virtual void rms_norm(Tensor x, const VectorWeight& w, float eps, std::size_t n_tokens,
                        Tensor y) = 0;
  // The same over each head of w's size, in place.
  virtual void rms_norm_heads(const VectorWeight& w, float eps, std::size_t n_tokens, Tensor x) = 0;
  // outputs[i] = group[i] x (with the epilogue), the first n_tokens rows.
  virtual void project(const ProjectionGroup& group, Tensor x, std::size_t n_tokens,
                       std::initializer_list<Tensor> outputs,
                       Epilogue epilogue = Epilogue::none) = 0;
  // Turns every head of x in place by its token's position.
  virtual void rope(const Rope& rope, const Batch& batch, std::size_t head_dim, Tensor x) = 0;
  // Stores keys and values of the batch, rounded to the cache's type.
  virtual void append(Tensor k, Tensor v, const Batch& batch, KvCache cache, std::size_t layer) = 0;
  // out[t, head] = softmax(q . keys * scale) values over the positions up to t's own.
  virtual void attention(Tensor q, const Batch& batch, KvCache cache, std::size_t layer,
                         std::size_t n_heads, float scale, Tensor out) = 0;
  // x's heads of head_dim go to two tensors in turn.
  virtual void split_heads(Tensor x, std::size_t head_dim, std::size_t n_tokens, Tensor even,
                           Tensor odd) = 0;
  // x *= gate(g), in place.
  virtual void gate(Gate gate, Tensor g, std::size_t n_tokens, Tensor x) = 0;

  // In place: each channel's causal convolution with its taps (4 rows of f32, the last for the
  // newest token), then SiLU. What stands at position 0 starts from nothing.
  virtual void causal_conv(const Weight& taps, const Batch& batch, RecurrentState state,
                           std::size_t layer, Tensor x) = 0;
  // out = the gated delta rule over each sequence's tokens. qkv, which changes: q and k of the key
  // heads, v of the heads. a, b: one a head, before the gates.
  virtual void delta_net(Tensor qkv, Tensor a, Tensor b, const DeltaGates& gates,
                         const Batch& batch, RecurrentState state, std::size_t layer,
                         Tensor out) = 0;

  // out[i] = x[rows[i]].
  virtual void gather(Tensor x, std::span<const std::int32_t> rows, Tensor out) = 0;

  // A cache's first n positions of a sequence, and back into a cache of this backend or another of
  // the same kind. save() may throw bad_alloc.
  virtual std::vector<std::byte> save(KvCache cache, std::size_t sequence, std::size_t n) = 0;
  virtual void restore(KvCache cache, std::size_t sequence, std::size_t n,
                       std::span<const std::byte> saved) = 0;
  // The same of a recurrent state as it is now.
  virtual std::vector<std::byte> save(RecurrentState state, std::size_t sequence) = 0;
  virtual void restore(RecurrentState state, std::size_t sequence,
                       std::span<const std::byte> saved) = 0;

  // Row t of a tensor, for the host: valid until the tensor is written again.
  virtual std::span<const float> read(Tensor x, std::size_t t) = 0;
  // The first error since the last call, if any.
  virtual Result<void> take_error() = 0;
  // Bytes of tensors, caches, states and scratch.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace tsq
