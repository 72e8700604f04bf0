// Models of real sizes with random weights: what speed and memory are measured on where the real
// files are not at hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "format/encodings.h"
#include "tsq/error.h"

namespace tsq::test {

// The layers of qwen35 that have a gated DeltaNet: all but every interval-th, whose attention is
// gated and turns rope_dims values of a head.
struct DeltaNet {
  std::uint32_t interval = 0;  // 0: there are none
  std::uint32_t k_heads = 0, v_heads = 0, head_dim = 0, taps = 4;
  std::uint32_t rope_dims = 0;
};

// A family's sizes. Adding a model is adding a row to synthetic_shapes().
struct SyntheticShape {
  const char* name;
  const char* architecture;
  std::uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, context;
  float rope_base, rms_epsilon;
  bool head_norms;         // q and k have a norm over each head
  bool tied_head;          // no output.weight
  bool ternary_embedding;  // else f16
  std::uint32_t rotation;  // block of the input rotations, with explicit signs; 0: none
  double zero_rate;        // of t1 and t2; s34 has 1 in 4
  DeltaNet delta_net = {};
};
std::span<const SyntheticShape> synthetic_shapes();

struct SyntheticOptions {
  format::Encoding encoding = format::Encoding::t1;
  std::uint64_t seed = 1;
};

// What write_synthetic would write.
struct SyntheticSize {
  std::uint64_t file_bytes = 0, ternary_weights = 0, ternary_bytes = 0;
};
Result<SyntheticSize> synthetic_size(const SyntheticShape& shape, const SyntheticOptions& options);

// Weights are random codes; scales keep the size of a unit activation through a matrix, so logits
// stay finite. Equal arguments give equal bytes. Holds a few megabytes of the file at a time.
Result<void> write_synthetic(const std::filesystem::path& path, const SyntheticShape& shape,
                             const SyntheticOptions& options);

}  // namespace tsq::test
