// What a .tsq file weighs, counted from its own records.
#pragma once

#include <cstdint>
#include <string>

#include "format/reader.h"

namespace tsq::tool {

struct FileSummary {
  std::uint64_t file_bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t ternary_weights = 0;
  std::uint64_t ternary_bytes = 0;  // codes, scales and padding
  std::uint64_t ternary_zeros = 0;

  double bits_per_weight() const;          // the whole file over every parameter
  double ternary_bits_per_weight() const;  // requires a ternary weight
  double zero_rate() const;                // requires a ternary weight
};

FileSummary summarise(const format::File& file);

const char* quant_type_name(format::QuantType type);
// What a scale rules: "group" of 128, "half group" of 64, "row", "tensor"; dense: "-".
const char* scale_name(const format::Shape& shape);
// What activations are quantised by: "group", "token"; dense: "-".
const char* activations_name(format::ActivationQuant quant);
// "block 128 over 1024, random signs"
std::string describe(const format::Rotation& rotation);
// "mean NLL 2.3456 over 32 tokens, 16 greedy ids", or why there is none.
std::string describe(const format::TokenProbe& probe);

// Lines of "label  value" about the whole file: what inspect and convert print.
std::string summary_text(const format::File& file);

}  // namespace tsq::tool
