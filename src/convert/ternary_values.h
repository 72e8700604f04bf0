// Rows of tensors as codes and scales. Ternary types have them; float tensors can hold ternary
// values too, as checkpoints do that were trained in three values and saved in 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "import/checkpoint.h"

namespace tsq::convert {

enum class TernaryValues : std::uint8_t {
  none,
  found,
  beyond_f16,  // but a scale is no fp16 number
};

// Whether every group of 128 inputs (fewer in the last one of a row) of an F32, F16 or BF16 tensor
// holds only -d, 0 (of either sign) and +d. Not looked at, because anything short or constant would
// pass: vectors, single rows, rows of fewer than 32 inputs. Nor is a tensor without both signs: it
// is a mask, a constant or empty. Stops at the first row that holds anything else.
TernaryValues find_ternary_values(const importer::Tensor& tensor);

// A row of a tensor of a ternary type, as the importer decodes it, or of one with ternary values:
// its groups have 128 inputs, a group of zeros the scale 0. Room: one code a weight, scales_a_row
// scales.
bool read_codes(const importer::Tensor& tensor, std::uint64_t row, std::uint8_t* codes,
                std::uint16_t* scales);

}  // namespace tsq::convert
