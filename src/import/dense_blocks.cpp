#include "import/block_codecs.h"

namespace tsq::importer {
namespace {

void decode_q8_0(const std::byte* block, float* values) {
  const float d = load_f16(block);
  for (std::size_t i = 0; i < 32; ++i) {
    values[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * d;
  }
}

// Low nibbles are weights 0 to 15, high nibbles 16 to 31. high_bits: a fifth bit of each weight.
void decode_nibbles(const std::byte* nibbles, std::uint32_t high_bits, float d, float subtract,
                    float minimum, float* values) {
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = i < 16 ? load_u8(nibbles + i) & 15 : load_u8(nibbles + i - 16) >> 4;
    const unsigned code = low | (high_bits >> i & 1) << 4;
    values[i] = (static_cast<float>(code) - subtract) * d + minimum;
  }
}

// The 6-bit scales and minima of the eight sub-blocks of 32 weights of Q4_K and Q5_K, in 12 bytes.
struct SubBlock {
  float d, minimum;
};
SubBlock sub_block(const std::byte* block, std::size_t j) {
  const std::byte* const q = block + 4;
  unsigned scale, minimum;
  if (j < 4) {
    scale = load_u8(q + j) & 63;
    minimum = load_u8(q + j + 4) & 63;
  } else {
    scale = (load_u8(q + j + 4) & 15) | load_u8(q + j - 4) >> 6 << 4;
    minimum = load_u8(q + j + 4) >> 4 | load_u8(q + j) >> 6 << 4;
  }
  return {load_f16(block) * static_cast<float>(scale),
          load_f16(block + 2) * static_cast<float>(minimum)};
}

// fp16 scale of the scales and of the minima, 12 bytes of these, Q5_K: 32 bytes of fifth bits, bit
// j of byte i for weight 32 j + i; then 32 bytes for each two sub-blocks, low nibbles first.
template <bool fifth_bit>
void decode_q45_k(const std::byte* block, float* values) {
  const std::byte* const high = block + 16;
  const std::byte* const nibbles = block + (fifth_bit ? 48 : 16);
  for (std::size_t j = 0; j < 8; ++j) {
    const SubBlock sub = sub_block(block, j);
    for (std::size_t i = 0; i < 32; ++i) {
      unsigned code = load_u8(nibbles + 32 * (j / 2) + i) >> (j % 2 * 4) & 15;
      if (fifth_bit) code |= (load_u8(high + i) >> j & 1) << 4;
      values[32 * j + i] = sub.d * static_cast<float>(code) - sub.minimum;
    }
  }
}

// 128 bytes of low nibbles, 64 of upper bit pairs, 16 int8 scales of 16 weights each, fp16 scale of
// these. Half h: weights 128 h + 32 k + i, k 0 to 3.
void decode_q6_k(const std::byte* block, float* values) {
  const float d = load_f16(block + 208);
  for (std::size_t n = 0; n < 256; ++n) {
    const std::size_t half = n / 128, k = n % 128 / 32, i = n % 32;
    const unsigned low = load_u8(block + 64 * half + 32 * (k % 2) + i) >> (k / 2 * 4) & 15;
    const unsigned high = load_u8(block + 128 + 32 * half + i) >> 2 * k & 3;
    const float scale = d * static_cast<float>(load<std::int8_t>(block + 192 + n / 16));
    values[n] = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

}  // namespace

void decode_dense_block(SourceType type, const std::byte* block, float* values) {
  switch (type) {
    case SourceType::f32:
      *values = load<float>(block);
      break;
    case SourceType::f16:
      *values = load_f16(block);
      break;
    case SourceType::bf16:
      *values = bf16_to_f32(load<std::uint16_t>(block));
      break;
    case SourceType::q8_0:
      return decode_q8_0(block, values);
    case SourceType::q4_0:
      return decode_nibbles(block + 2, 0, load_f16(block), 8, 0, values);
    case SourceType::q4_1:
      return decode_nibbles(block + 4, 0, load_f16(block), 0, load_f16(block + 2), values);
    case SourceType::q5_0:
      return decode_nibbles(block + 6, load<std::uint32_t>(block + 2), load_f16(block), 16, 0,
                            values);
    case SourceType::q5_1:
      return decode_nibbles(block + 8, load<std::uint32_t>(block + 4), load_f16(block), 0,
                            load_f16(block + 2), values);
    case SourceType::q4_k:
      return decode_q45_k<false>(block, values);
    case SourceType::q5_k:
      return decode_q45_k<true>(block, values);
    case SourceType::q6_k:
      return decode_q6_k(block, values);
    default:
      break;
  }
}

}  // namespace tsq::importer
