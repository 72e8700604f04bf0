// A model's architecture: what it is made of and how a pass runs over a backend.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/binder.h"
#include "backend/backend.h"
#include "format/reader.h"
#include "tsq/error.h"

namespace tsq {

// The most positions of any context: rope_angles() is exact to there.
inline constexpr std::size_t kMaxContext = std::size_t{1} << 24;

// Sizes of a decoder, read from the metadata and checked against each other.
struct Config {
  std::string architecture;
  std::size_t n_layers = 0, hidden = 0, ffn = 0, vocab = 0, context = 0;
  std::size_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::size_t n_kv_layers = 0;  // those that attend; the others are recurrent
  RecurrentShape recurrent;     // n_layers 0: none
  float rms_eps = 0;
  Rope rope;

  float attention_scale() const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  }
  KvShape kv_shape(std::size_t context_tokens) const {
    return {n_kv_layers, 1, context_tokens, n_kv_heads, head_dim};
  }
};

// The tensors and cache that one session's passes work in.
class GraphState {
 public:
  virtual ~GraphState() = default;
};

// Read-only once made: many sessions run it, each on its own backend and state.
class Graph {
 public:
  virtual ~Graph() = default;
  const Config& config() const { return config_; }

  // Scratch for batches of up to max_tokens and a cache of `context` positions.
  virtual std::unique_ptr<GraphState> new_state(Backend& backend, std::size_t max_tokens,
                                                std::size_t context) const = 0;
  // Appends the batch to the cache and leaves its hidden states in the state.
  virtual void forward(Backend& backend, GraphState& state, const Batch& batch) const = 0;
  // What the cache holds of the first n positions, and back into a state of the same graph whose
  // backend computes alike.
  virtual std::vector<std::byte> save(Backend& backend, GraphState& state, std::size_t n) const = 0;
  virtual void restore(Backend& backend, GraphState& state, std::size_t n,
                       std::span<const std::byte> saved) const = 0;
  // The same of the recurrent state, which is that of the last position and of no other.
  virtual std::vector<std::byte> save_recurrent(Backend&, GraphState&) const { return {}; }
  virtual void restore_recurrent(Backend&, GraphState&, std::span<const std::byte>) const {}
  // Logits of the last batch's rows (at most kMaxLogitRows of them): [rows, vocab].
  static constexpr std::size_t kMaxLogitRows = 16;
  virtual Tensor logits(Backend& backend, GraphState& state,
                        std::span<const std::int32_t> rows) const = 0;

 protected:
  explicit Graph(Config config) : config_(std::move(config)) {}
  Config config_;
};

// The graph for the file's general.architecture with every weight bound. Errors: unsupported (an
// architecture, a tensor or a setting that tsq has no graph for, by name), damaged (a weight that
// is missing or of the wrong shape). The file must outlive the graph.
Result<std::unique_ptr<Graph>> make_graph(const format::File& file, const WeightHook& hook = {});

// Whether make_graph knows the name.
bool has_graph(std::string_view architecture);

}  // namespace tsq
