// What a conversion did, computed from the records that were written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/writer.h"
#include "import/checkpoint.h"

namespace tsq::convert {

// What becomes of a tensor's values.
enum class Fate : std::uint8_t {
  kept,        // the same
  widened,     // the same, from blocks that tsq has no encoding for
  as_q4,       // the same: a ternary tensor that t1 and t2 cannot hold
  narrowed,    // rounded
  recognised,  // the same: a float tensor whose values are ternary
};

struct EncodingTotal {
  format::Encoding encoding;
  std::size_t tensors = 0;
  std::uint64_t weights = 0;
  std::uint64_t bytes = 0;  // bodies and scale arrays, padding of rows and inputs included
};

struct Summary {
  std::uint64_t file_bytes = 0;
  std::vector<EncodingTotal> encodings;  // ascending
  std::uint64_t weights = 0, weight_bytes = 0;
  std::uint64_t ternary_weights = 0, ternary_bytes = 0, ternary_zeros = 0;
  // The bytes that the ternary tensors would take if all were t1, or t2.
  std::uint64_t ternary_bytes_as_t1 = 0, ternary_bytes_as_t2 = 0;

  // Dense tensors of blocks that tsq has no encoding for, and what they take as f32 or f16.
  std::size_t widened_tensors = 0;
  std::uint64_t widened_bytes = 0;
  std::size_t narrowed_tensors = 0;  // rounded, as asked
  std::size_t ternary_as_q4 = 0;     // tensors that t1 and t2 cannot hold
  std::size_t recognised_tensors = 0;
  // Names of float tensors of ternary values that stay dense: fp16 does not hold all their scales.
  std::vector<std::string> beyond_f16;

  std::vector<format::Rotation> rotations;
  std::size_t rotated_tensors = 0;

  bool has_tokenizer = false;
  std::string no_tokenizer;  // why there is none
  std::size_t dropped_merges = 0;
  format::TokenProbe token_probe;

  std::vector<std::string> warnings;

  double bits_per_weight() const;          // of the whole model
  double bits_per_ternary_weight() const;  // 0 without ternary weights
  double zero_rate() const;                // of the ternary weights
};

// contents: as the writer has filled it in; fates: of its tensors.
Summary summarize(const importer::Checkpoint& checkpoint, const format::FileContents& contents,
                  std::span<const Fate> fates, std::uint64_t file_bytes,
                  const format::TokenProbe& probe);

}  // namespace tsq::convert
