// Models of real sizes with random weights: what speed and memory are measured on where the real
// files are not at hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "format/encodings.h"
#include "tsq/error.h"

namespace tsq::test {

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
};
std::span<const SyntheticShape> synthetic_shapes();

struct SyntheticOptions {
  format::Encoding encoding = format::Encoding::t1;
  std::uint64_t seed = 1;
};

// Weights are random codes; scales keep the size of a unit activation through a matrix, so logits
// stay finite. Equal arguments give equal bytes. Holds a few megabytes of the file at a time.
Result<void> write_synthetic(const std::filesystem::path& path, const SyntheticShape& shape,
                             const SyntheticOptions& options);

}  // namespace tsq::test
