#include "backend/recurrence.h"

#include <algorithm>
#include <cmath>

namespace tsq {
namespace {

constexpr std::size_t kChannels = 128;  // that a thread convolves at a time
constexpr std::size_t kStateRows = 32;  // that a thread takes at a time
// Tokens whose q and k stay in the cache while the rows pass over them.
constexpr std::size_t kTokens = 32;
constexpr float kL2Epsilon = 1e-6f;

// Neighbours of one sequence. What starts at position 0 starts from nothing.
struct Run {
  std::size_t first, last, sequence;
  bool from_nothing;
};

std::vector<Run> runs_of(const Batch& batch) {
  std::vector<Run> runs;
  for (std::size_t t = 0; t < batch.size(); ++t) {
    const auto sequence = static_cast<std::size_t>(batch.sequences[t]);
    const bool starts = batch.positions[t] == 0;
    if (runs.empty() || starts || runs.back().sequence != sequence) {
      runs.push_back({t, t, sequence, starts});
    }
    ++runs.back().last;
  }
  return runs;
}

}  // namespace

RecurrentState Recurrence::new_state(const RecurrentShape& shape, std::size_t max_tokens) {
  stores_.emplace_back(shape);
  if (decay_.size() < max_tokens * shape.n_heads) {
    decay_ = Buffer<float>(max_tokens * shape.n_heads);
    beta_ = Buffer<float>(max_tokens * shape.n_heads);
  }
  return {static_cast<std::uint32_t>(stores_.size() - 1)};
}

void Recurrence::causal_conv(const Weight& taps, const Batch& batch, RecurrentState state,
                             std::size_t layer, Rows x) {
  RecurrentStore& kept = store(state);
  const std::size_t channels = kept.shape().channels();
  const auto* const weights = reinterpret_cast<const float*>(taps.body);
  const std::size_t weight_stride = format::padded_cols(taps.shape.encoding, taps.shape.cols);
  for (const Run& run : runs_of(batch)) {
    if (run.from_nothing) kept.clear_history(layer, run.sequence);
    const kernels::CausalConv conv = {.weights = weights,
                                      .weight_stride = weight_stride,
                                      .history = kept.history(layer, run.sequence),
                                      .history_stride = channels,
                                      .x = x[run.first],
                                      .stride = x.stride,
                                      .n = run.last - run.first};
    const std::size_t units = (channels + kChannels - 1) / kChannels;
    pool_.parallel_for(units, 4, [&](std::size_t first, std::size_t last) {
      k_.causal_conv(conv, first * kChannels, std::min(last * kChannels, channels));
    });
  }
}

void Recurrence::delta_net(Rows qkv, Rows a, Rows b, const DeltaGates& gates, const Batch& batch,
                           RecurrentState state, std::size_t layer, Rows out) {
  RecurrentStore& kept = store(state);
  const RecurrentShape& shape = kept.shape();
  const std::size_t keys = shape.n_key_heads * shape.key_dim;
  const auto q_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_dim)));
  pool_.parallel_for(batch.size(), 8, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      for (std::size_t i = 0; i < 2 * keys; i += shape.key_dim) {
        float* const head = qkv[t] + i;
        k_.l2_norm(head, shape.key_dim, kL2Epsilon, i < keys ? q_scale : 1.0f, head);
      }
      k_.delta_gates(a[t], b[t], gates.rate.values.data(), gates.bias.values.data(), shape.n_heads,
                     decay_.data() + t * shape.n_heads, beta_.data() + t * shape.n_heads);
    }
  });
  const std::size_t blocks = (shape.value_dim + kStateRows - 1) / kStateRows;
  for (const Run& run : runs_of(batch)) {
    if (run.from_nothing) {
      for (std::size_t head = 0; head < shape.n_heads; ++head) {
        kept.clear_state(layer, run.sequence, head);
      }
    }
    pool_.parallel_for(shape.n_heads * blocks, 4, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t head = i / blocks, row = i % blocks * kStateRows;
        const std::size_t key_head = head / (shape.n_heads / shape.n_key_heads);
        for (std::size_t t = run.first; t < run.last; t += kTokens) {
          const float* const q = qkv[t] + key_head * shape.key_dim;
          k_.delta_net({.state = kept.state(layer, run.sequence, head),
                        .key_dim = shape.key_dim,
                        .n = std::min(kTokens, run.last - t),
                        .q = q,
                        .k = q + keys,
                        .v = qkv[t] + 2 * keys + head * shape.value_dim,
                        .stride = qkv.stride,
                        .decay = decay_.data() + t * shape.n_heads + head,
                        .beta = beta_.data() + t * shape.n_heads + head,
                        .gate_stride = shape.n_heads,
                        .out = out[t] + head * shape.value_dim,
                        .out_stride = out.stride},
                       {row, std::min(row + kStateRows, shape.value_dim)});
        }
      }
    });
  }
}

std::uint64_t Recurrence::memory_bytes() const {
  std::uint64_t bytes = (decay_.size() + beta_.size()) * sizeof(float);
  for (const RecurrentStore& kept : stores_) bytes += kept.memory_bytes();
  return bytes;
}

}  // namespace tsq
