#include "import/block_codecs.h"

namespace tsq::importer {
namespace {

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

// fp16 scale, then four codes a byte, lowest bits first, in order: PQ2_0 has 32 bytes of them,
// Q2_0 16.
template <std::size_t bytes>
void decode_q2(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  scales[0] = load<std::uint16_t>(block);
  for (std::size_t i = 0; i < bytes; ++i) {
    for (std::size_t k = 0; k < 4; ++k) {
      codes[4 * i + k] = static_cast<std::uint8_t>(load_u8(block + 2 + i) >> (2 * k) & 3);
    }
  }
}

// 18 bytes: fp16 scale, then a bit a weight: +1 where it is set, else -1.
void decode_q1_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  scales[0] = load<std::uint16_t>(block);
  for (std::size_t i = 0; i < 128; ++i) {
    codes[i] = static_cast<std::uint8_t>((load_u8(block + 2 + i / 8) >> i % 8 & 1) * 2);
  }
}

// 66 bytes: two halves of 32 bytes, bits 2l of byte m are weight 128 half + 32 l + m; fp16 scale.
void decode_tq2_0(const std::byte* block, std::uint8_t* codes, std::uint16_t* scales) {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      for (std::size_t m = 0; m < 32; ++m) {
        codes[128 * half + 32 * lane + m] =
            static_cast<std::uint8_t>(load_u8(block + 32 * half + m) >> (2 * lane) & 3);
      }
    }
  }
  scales[0] = scales[1] = load<std::uint16_t>(block + 64);
}

// `bytes` bytes, the highest bits first: bits 6 - 2l of byte p are weight p + bytes * l.
template <std::size_t bytes>
void decode_i2_s(const std::byte* block, std::uint8_t* codes) {
  for (std::size_t lane = 0; lane < 4; ++lane) {
    for (std::size_t p = 0; p < bytes; ++p) {
      codes[bytes * lane + p] = static_cast<std::uint8_t>(load_u8(block + p) >> (6 - 2 * lane) & 3);
    }
  }
}

// 13 bytes, the least significant of five digits first: 12 bytes for weights 0 to 14 of each 16,
// and digits 0 to 3 of the last byte for the 16th ones. The bytes are fractions as above.
void decode_iq1_bn(const std::byte* block, std::uint8_t* codes) {
  for (std::size_t byte = 0; byte < 13; ++byte) {
    std::uint8_t digits[5];
    spread_digits<1, 5>(block + byte, digits);
    for (std::size_t j = 0; j < (byte < 12 ? 5 : 4); ++j) {
      codes[byte < 12 ? 16 * (byte / 3) + 5 * (byte % 3) + j : 16 * j + 15] = digits[4 - j];
    }
  }
}

// 16 bytes, the lowest bits first: bits 2l of byte p are weight p + 16 l.
void decode_iq2_bn(const std::byte* block, std::uint8_t* codes) {
  for (std::size_t lane = 0; lane < 4; ++lane) {
    for (std::size_t p = 0; p < 16; ++p) {
      codes[16 * lane + p] = static_cast<std::uint8_t>(load_u8(block + p) >> 2 * lane & 3);
    }
  }
}

// 42 bytes: 64 quads of four weights, one of them 0: a nibble each, low first, and a sign bit; fp16
// scale. The nibble's upper bits are the lane of the 0; of the other three lanes the first is +,
// the next two are - where bits 0 and 1 are set. The sign bit negates all three.
//
// The lanes of quad g are 16 weights apart, 64 (g / 16) + g % 16 + 16 lane; older writers gave
// them consecutive places, 4 g + lane.
void decode_stq1_0(const std::byte* block, bool consecutive, std::uint8_t* codes,
                   std::uint16_t* scales) {
  for (std::size_t g = 0; g < 64; ++g) {
    const unsigned nibble = load_u8(block + g / 2) >> (g % 2 * 4) & 15;
    const unsigned all_minus = load_u8(block + 32 + g / 8) >> g % 8 & 1;
    const std::size_t first = consecutive ? 4 * g : 64 * (g / 16) + g % 16;
    const std::size_t stride = consecutive ? 1 : 16;
    unsigned minus = nibble << 1 & 6;  // bit k: the k-th lane that is not 0 is -
    for (std::size_t lane = 0; lane < 4; ++lane) {
      unsigned code = 1;
      if (lane != nibble >> 2) {
        code = (minus & 1) == all_minus ? 2 : 0;
        minus >>= 1;
      }
      codes[first + stride * lane] = static_cast<std::uint8_t>(code);
    }
  }
  scales[0] = scales[1] = load<std::uint16_t>(block + 40);
}

}  // namespace

void decode_ternary_block(SourceType type, const std::byte* block, std::uint8_t* codes,
                          std::uint16_t* scales) {
  switch (type) {
    case SourceType::pq2_0:
      return decode_q2<32>(block, codes, scales);
    case SourceType::ptq1_0:
      return decode_ptq1_0(block, codes, scales);
    case SourceType::tq1_0:
      return decode_tq1_0(block, codes, scales);
    case SourceType::tq2_0:
      return decode_tq2_0(block, codes, scales);
    case SourceType::q1_0:
      return decode_q1_0(block, codes, scales);
    case SourceType::q2_0:
      return decode_q2<16>(block, codes, scales);
    case SourceType::i2_s:
      return decode_i2_s<32>(block, codes);
    case SourceType::i2_s_64:
      return decode_i2_s<16>(block, codes);
    case SourceType::iq1_bn:
      return decode_iq1_bn(block, codes);
    case SourceType::iq2_bn:
      return decode_iq2_bn(block, codes);
    case SourceType::stq1_0:
      return decode_stq1_0(block, false, codes, scales);
    case SourceType::stq1_0_consecutive:
      return decode_stq1_0(block, true, codes, scales);
    default:  // packed_u8 has no blocks
      break;
  }
}

void decode_packed_row(std::span<const std::byte> bytes, unsigned quarter, std::uint8_t* codes) {
  for (std::size_t col = 0; col < bytes.size(); ++col) {
    codes[col] =
        static_cast<std::uint8_t>(std::to_integer<unsigned>(bytes[col]) >> 2 * quarter & 3);
  }
}

}  // namespace tsq::importer
