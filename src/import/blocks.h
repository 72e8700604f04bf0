// Blocks of the types of foreign files, and of .tsq files: their sizes, and one row of a tensor to
// codes and scales or to f32 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "import/checkpoint.h"

namespace tsq::importer {

struct BlockShape {
  std::uint32_t weights, bytes;
};
BlockShape block_shape(SourceType type);
const char* source_type_name(SourceType type);
bool is_ternary(SourceType type);

// Weights that share one scale of decode_ternary_row: 64 where blocks have 64 and in half groups,
// else 128, as in float tensors of ternary values.
std::uint32_t scale_group(const Tensor& tensor);
// What the scales of a ternary tensor rule: groups, where there is a row_scale rows or the tensor.
format::ScaleKind scale_kind(const Tensor& tensor);
// Whether code 3 of a ternary type means +2; other types give it no meaning, or do not have it.
bool can_hold_plus_2(SourceType type);

// Bytes of one row, and those of them before its first block; of t2, t1 and s34 its share of a row
// block with a scale a group.
std::uint64_t row_bytes(SourceType type, std::uint64_t cols);
std::uint32_t row_header_bytes(SourceType type);
// As it lies in the file. Not of t2, t1 and s34; of packed_u8 the bytes that four rows share.
std::span<const std::byte> row_data(const Tensor& tensor, std::uint64_t row);

// Of a dense type: the bytes of row_data, its blocks in the order of the columns.
void copy_row(const Tensor& tensor, std::uint64_t row, std::byte* out);

// The scale of a row whose blocks have none: of I2_S and packed_u8 the tensor's, of IQ1_BN and
// IQ2_BN its own, of t2, t1 and s34 one of their side array.
std::optional<float> row_scale(const Tensor& tensor, std::uint64_t row);

// A row of a ternary type as codes (value = (code - 1) * scale) and one fp16 scale per
// scale_group weights; blocks of 256 give theirs twice, a row_scale is repeated, rounded to
// fp16. Room: one code a weight, scales_a_row scales. The 2-bit types can hold code 3: it is
// written as it stands, and the answer is false.
bool decode_ternary_row(const Tensor& tensor, std::uint64_t row, std::uint8_t* codes,
                        std::uint16_t* scales);

std::size_t scales_a_row(const Tensor& tensor);

// Whether every value, scale and minimum of the row is finite.
bool row_is_finite(const Tensor& tensor, std::uint64_t row);

// A row of any type as values; code 3 is +2.
void decode_row(const Tensor& tensor, std::uint64_t row, float* values);

}  // namespace tsq::importer
