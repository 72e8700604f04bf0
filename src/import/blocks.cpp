#include "import/blocks.h"

#include <cstring>
#include <vector>

#include "base/half.h"

namespace tsq::importer {
namespace {

constexpr std::size_t kBlock = 32;  // weights of a q8_0, q4_0, q4_1 block

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

float load_f16(const std::byte* p) { return f16_to_f32(load<std::uint16_t>(p)); }

// Base-3 bytes are fixed-point fractions: digit n of byte b is the integer part of
// 3 * frac(b * 3^n / 256), the most significant digit first.
//
// Spreads `digits` digits of each of `width` bytes: digit n of byte m goes to codes[m + width * n].
template <int width, int digits>
void spread_digits(const std::byte* bytes, std::uint8_t* codes) {
  std::uint8_t rest[width];
  std::memcpy(rest, bytes, width);
  for (int n = 0; n < digits; ++n) {
    for (int m = 0; m < width; ++m) {
      const auto thrice = static_cast<std::uint16_t>(rest[m] * 3);
      codes[width * n + m] = static_cast<std::uint8_t>(thrice >> 8);
      rest[m] = static_cast<std::uint8_t>(thrice);
    }
  }
}

// 28 bytes: 16 bytes of five digits, 8 of five, 2 of four, fp16 scale.
void decode_ptq1_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  spread_digits<16, 5>(block, codes);
  spread_digits<8, 5>(block + 16, codes + 80);
  spread_digits<2, 4>(block + 24, codes + 120);
  scales[0] = load<std::uint16_t>(block + 26);
}

// 54 bytes: 32 bytes of five digits, 16 of five, 4 of four, fp16 scale.
void decode_tq1_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  spread_digits<32, 5>(block, codes);
  spread_digits<16, 5>(block + 32, codes + 160);
  spread_digits<4, 4>(block + 48, codes + 240);
  scales[0] = scales[1] = load<std::uint16_t>(block + 52);
}

// 34 bytes: fp16 scale, then four codes a byte, lowest bits first, in order.
void decode_pq2_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  scales[0] = load<std::uint16_t>(block);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto byte = static_cast<std::uint8_t>(block[2 + i]);
    for (std::size_t k = 0; k < 4; ++k) {
      codes[4 * i + k] = static_cast<std::uint8_t>(byte >> (2 * k) & 3);
    }
  }
}

// 66 bytes: two halves of 32 bytes, bits 2l of byte m are weight 128 half + 32 l + m; fp16 scale.
void decode_tq2_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      for (std::size_t m = 0; m < 32; ++m) {
        const auto byte = static_cast<std::uint8_t>(block[32 * half + m]);
        codes[128 * half + 32 * lane + m] = static_cast<std::uint8_t>(byte >> (2 * lane) & 3);
      }
    }
  }
  scales[0] = scales[1] = load<std::uint16_t>(block + 64);
}

void decode_q8_0(const std::byte* block, float* values) {
  const float d = load_f16(block);
  for (std::size_t i = 0; i < kBlock; ++i) {
    values[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * d;
  }
}

// Low nibbles are weights 0 to 15, high nibbles 16 to 31.
void decode_q4(const std::byte* nibbles, float d, float subtract, float minimum, float* values) {
  for (std::size_t i = 0; i < 16; ++i) {
    const auto byte = static_cast<std::uint8_t>(nibbles[i]);
    values[i] = (static_cast<float>(byte & 15) - subtract) * d + minimum;
    values[i + 16] = (static_cast<float>(byte >> 4) - subtract) * d + minimum;
  }
}

bool is_finite_f16(const std::byte* p) { return (load<std::uint16_t>(p) & 0x7c00u) != 0x7c00u; }

template <class IsFinite>
bool all_blocks(SourceType type, std::span<const std::byte> row, IsFinite is_finite) {
  const std::size_t bytes = block_shape(type).bytes;
  bool finite = true;
  for (std::size_t at = 0; at < row.size(); at += bytes) finite &= is_finite(row.data() + at);
  return finite;
}

void decode_ternary_values(SourceType type, std::span<const std::byte> row, float* values) {
  const BlockShape shape = block_shape(type);
  const std::size_t cols = row.size() / shape.bytes * shape.weights;
  std::vector<std::uint8_t> codes(cols);
  std::vector<std::uint16_t> scales(cols / kScaleGroup);
  decode_ternary_row(type, row, codes.data(), scales.data());
  for (std::size_t i = 0; i < cols; ++i) {
    values[i] = static_cast<float>(codes[i] - 1) * f16_to_f32(scales[i / kScaleGroup]);
  }
}

}  // namespace

BlockShape block_shape(SourceType type) {
  switch (type) {
    case SourceType::f32:
      return {1, 4};
    case SourceType::f16:
      return {1, 2};
    case SourceType::bf16:
      return {1, 2};
    case SourceType::q8_0:
      return {32, 34};
    case SourceType::q4_0:
      return {32, 18};
    case SourceType::q4_1:
      return {32, 20};
    case SourceType::pq2_0:
      return {128, 34};
    case SourceType::ptq1_0:
      return {128, 28};
    case SourceType::tq1_0:
      return {256, 54};
    case SourceType::tq2_0:
      return {256, 66};
  }
  return {1, 1};
}

const char* source_type_name(SourceType type) {
  switch (type) {
    case SourceType::f32:
      return "F32";
    case SourceType::f16:
      return "F16";
    case SourceType::bf16:
      return "BF16";
    case SourceType::q8_0:
      return "Q8_0";
    case SourceType::q4_0:
      return "Q4_0";
    case SourceType::q4_1:
      return "Q4_1";
    case SourceType::pq2_0:
      return "PQ2_0";
    case SourceType::ptq1_0:
      return "PTQ1_0";
    case SourceType::tq1_0:
      return "TQ1_0";
    case SourceType::tq2_0:
      return "TQ2_0";
  }
  return "?";
}

bool is_ternary(SourceType type) {
  return type == SourceType::pq2_0 || type == SourceType::ptq1_0 || type == SourceType::tq1_0 ||
         type == SourceType::tq2_0;
}

std::uint64_t row_bytes(SourceType type, std::uint64_t cols) {
  const BlockShape shape = block_shape(type);
  return cols / shape.weights * shape.bytes;
}

bool decode_ternary_row(SourceType type, std::span<const std::byte> row, std::uint8_t* codes,
                        std::uint16_t* scales) {
  const BlockShape shape = block_shape(type);
  const std::size_t blocks = row.size() / shape.bytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::byte* block = row.data() + b * shape.bytes;
    std::uint8_t* block_codes = codes + b * shape.weights;
    std::uint16_t* block_scales = scales + b * (shape.weights / kScaleGroup);
    switch (type) {
      case SourceType::pq2_0:
        decode_pq2_0(block, block_codes, block_scales);
        break;
      case SourceType::ptq1_0:
        decode_ptq1_0(block, block_codes, block_scales);
        break;
      case SourceType::tq1_0:
        decode_tq1_0(block, block_codes, block_scales);
        break;
      case SourceType::tq2_0:
        decode_tq2_0(block, block_codes, block_scales);
        break;
      default:
        return false;
    }
  }
  std::uint8_t both_bits = 0;
  for (std::size_t i = 0; i < blocks * shape.weights; ++i) {
    both_bits |= static_cast<std::uint8_t>(codes[i] & (codes[i] >> 1));
  }
  return (both_bits & 1) == 0;
}

bool row_is_finite(SourceType type, std::span<const std::byte> row) {
  const auto f16_at = [&](std::size_t offset) {
    return all_blocks(type, row, [=](const std::byte* p) { return is_finite_f16(p + offset); });
  };
  switch (type) {
    case SourceType::f32:
      return all_blocks(type, row, [](const std::byte* p) {
        return (load<std::uint32_t>(p) & 0x7f800000u) != 0x7f800000u;
      });
    case SourceType::bf16:
      return all_blocks(type, row, [](const std::byte* p) {
        return (load<std::uint16_t>(p) & 0x7f80u) != 0x7f80u;
      });
    case SourceType::f16:
    case SourceType::q8_0:
    case SourceType::q4_0:
    case SourceType::pq2_0:
      return f16_at(0);
    case SourceType::q4_1:
      return f16_at(0) && f16_at(2);
    case SourceType::ptq1_0:
      return f16_at(26);
    case SourceType::tq1_0:
      return f16_at(52);
    case SourceType::tq2_0:
      return f16_at(64);
  }
  return false;
}

void decode_row(SourceType type, std::span<const std::byte> row, float* values) {
  if (is_ternary(type)) return decode_ternary_values(type, row, values);
  const BlockShape shape = block_shape(type);
  for (std::size_t b = 0; b < row.size() / shape.bytes; ++b) {
    const std::byte* block = row.data() + b * shape.bytes;
    float* out = values + b * shape.weights;
    switch (type) {
      case SourceType::f32:
        *out = load<float>(block);
        break;
      case SourceType::f16:
        *out = load_f16(block);
        break;
      case SourceType::bf16:
        *out = bf16_to_f32(load<std::uint16_t>(block));
        break;
      case SourceType::q8_0:
        decode_q8_0(block, out);
        break;
      case SourceType::q4_0:
        decode_q4(block + 2, load_f16(block), 8, 0, out);
        break;
      case SourceType::q4_1:
        decode_q4(block + 4, load_f16(block), 0, load_f16(block + 2), out);
        break;
      default:
        break;
    }
  }
}

}  // namespace tsq::importer
