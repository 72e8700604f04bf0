// The backend on this machine's cores: the operations on the kernel table and a thread pool.
#pragma once

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "kernels/kernels.h"

namespace tsq {

// What one matrix of a projection was given and gave, for tests: rows of `n` tokens.
struct ProjectionTrace {
  const Weight* weight;
  std::size_t n;
  std::size_t padded_cols;
  std::span<const float> rotated;      // [n][padded cols], the input after its rotation
  std::span<const std::int8_t> q;      // [n][padded cols]; empty in the f32 path and for dense
  std::span<const float> scale;        // [n][padded cols / 128]
  std::span<const float> token_scale;  // [n]; empty where activations are quantised per group
  std::span<const float> y;            // [n][rows], before the epilogue
};

struct CpuOptions {
  const kernels::Kernels* kernels;
  int threads = 1;
  bool int8 = true;            // activations of ternary weights; false: f32, with a cache of f32
  std::size_t max_tokens = 1;  // of a batch
  std::function<void(const ProjectionTrace&)> observer;  // empty outside tests
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace tsq
