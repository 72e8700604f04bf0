// The operations of gated DeltaNet on the kernel table and a thread pool.
#pragma once

#include "backend/backend.h"
#include "backend/recurrent_store.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace tsq {

// A tensor's rows in memory.
struct Rows {
  float* data;
  std::size_t stride;

  float* operator[](std::size_t t) const { return data + t * stride; }
};

class Recurrence {
 public:
  Recurrence(const kernels::Kernels& kernels, ThreadPool& pool) : k_(kernels), pool_(pool) {}

  // max_tokens: of a batch.
  RecurrentState new_state(const RecurrentShape& shape, std::size_t max_tokens);
  RecurrentStore& store(RecurrentState state) { return stores_[state.id]; }

  void causal_conv(const Weight& taps, const Batch& batch, RecurrentState state, std::size_t layer,
                   Rows x);
  void delta_net(Rows qkv, Rows a, Rows b, const DeltaGates& gates, const Batch& batch,
                 RecurrentState state, std::size_t layer, Rows out);

  std::uint64_t memory_bytes() const;

 private:
  const kernels::Kernels& k_;
  ThreadPool& pool_;
  std::vector<RecurrentStore> stores_;
  Buffer<float> decay_, beta_;  // [tokens][heads]
};

}  // namespace tsq
