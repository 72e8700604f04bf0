// Blocks of the quantised types of GGUF: their sizes, and one row of blocks to codes and scales or
// to f32 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "import/checkpoint.h"

namespace tsq::importer {

inline constexpr std::uint32_t kScaleGroup = 128;  // weights that share one decoded ternary scale

struct BlockShape {
  std::uint32_t weights, bytes;
};
BlockShape block_shape(SourceType type);
const char* source_type_name(SourceType type);
bool is_ternary(SourceType type);

// Bytes of one row; cols is a whole number of blocks.
std::uint64_t row_bytes(SourceType type, std::uint64_t cols);

// A row of a ternary type as codes (value = (code - 1) * scale) and one fp16 scale per 128
// weights; blocks of 256 give theirs twice. Room: one code a weight. The 2-bit types can hold code
// 3: it is written as it stands, and the answer is false.
bool decode_ternary_row(SourceType type, std::span<const std::byte> row, std::uint8_t* codes,
                        std::uint16_t* scales);

// Whether every value, scale and minimum of the row is finite.
bool row_is_finite(SourceType type, std::span<const std::byte> row);

// A row of any type as values; code 3 is +2.
void decode_row(SourceType type, std::span<const std::byte> row, float* values);

}  // namespace tsq::importer
