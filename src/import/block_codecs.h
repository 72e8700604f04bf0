// One block of each type; blocks.cpp makes rows of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/half.h"
#include "import/checkpoint.h"

namespace tsq::importer {

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
inline float load_f16(const std::byte* bytes) { return f16_to_f32(load<std::uint16_t>(bytes)); }
inline unsigned load_u8(const std::byte* bytes) { return std::to_integer<unsigned>(*bytes); }

// Codes 0 to 3, one a weight, and a scale for each scale_group of them. Types with a row_scale have
// none in their blocks.
void decode_ternary_block(SourceType type, const std::byte* block, std::uint8_t* codes,
                          std::uint16_t* scales);
// A row of packed_u8: the quarter of the rows that it lies in picks the bits of each byte.
void decode_packed_row(std::span<const std::byte> bytes, unsigned quarter, std::uint8_t* codes);
void decode_dense_block(SourceType type, const std::byte* block, float* values);

}  // namespace tsq::importer
