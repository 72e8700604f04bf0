// What gated DeltaNet keeps of a sequence: [layer][sequence], the last inputs of its convolution
// [3][channels] and the state of its heads [head][value_dim][key_dim], f32.
#pragma once

#include <cassert>
#include <cstring>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"

namespace tsq {

class RecurrentStore {
 public:
  explicit RecurrentStore(const RecurrentShape& shape)
      : shape_(shape), data_(shape.n_layers * shape.n_sequences * shape.layer_size()) {}

  const RecurrentShape& shape() const { return shape_; }

  float* history(std::size_t layer, std::size_t sequence) { return at(layer, sequence); }
  float* state(std::size_t layer, std::size_t sequence, std::size_t head) {
    return at(layer, sequence) + shape_.history_size() + head * shape_.head_size();
  }
  // As before a sequence's first token.
  void clear_history(std::size_t layer, std::size_t sequence) {
    std::memset(history(layer, sequence), 0, shape_.history_size() * sizeof(float));
  }
  void clear_state(std::size_t layer, std::size_t sequence, std::size_t head) {
    std::memset(state(layer, sequence, head), 0, shape_.head_size() * sizeof(float));
  }

  std::vector<std::byte> save(std::size_t sequence) {
    const std::size_t bytes = shape_.layer_size() * sizeof(float);
    std::vector<std::byte> saved(shape_.n_layers * bytes);
    for (std::size_t layer = 0; layer < shape_.n_layers; ++layer) {
      std::memcpy(saved.data() + layer * bytes, at(layer, sequence), bytes);
    }
    return saved;
  }
  void restore(std::size_t sequence, std::span<const std::byte> saved) {
    const std::size_t bytes = shape_.layer_size() * sizeof(float);
    assert(saved.size() == shape_.n_layers * bytes);
    for (std::size_t layer = 0; layer < shape_.n_layers; ++layer) {
      std::memcpy(at(layer, sequence), saved.data() + layer * bytes, bytes);
    }
  }
  std::uint64_t memory_bytes() const { return data_.size() * sizeof(float); }

 private:
  float* at(std::size_t layer, std::size_t sequence) {
    return data_.data() + (layer * shape_.n_sequences + sequence) * shape_.layer_size();
  }

  RecurrentShape shape_;
  Buffer<float> data_;
};

}  // namespace tsq
