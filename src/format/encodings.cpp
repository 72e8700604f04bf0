#include "format/encodings.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "base/checked.h"
#include "base/half.h"

namespace tsq::format {
namespace {

constexpr std::size_t kT2Dwords = 8;  // dwords of a row and group
constexpr std::size_t kT1Dwords = 6;
constexpr std::size_t kT1Body = 120;  // inputs of a group in the body dwords, the rest in the tail
static_assert(kScaleLineBytes + kT2CodeBytes == 1088);
static_assert(kT1TailBytes + kT1Groups * (kScaleLineBytes + kT1CodeBytes) == 4416);
static_assert(kScaleLineBytes + kS34CodeBytes == 704);

std::uint16_t load_u16(const std::byte* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void store_u16(std::byte* bytes, std::uint16_t value) { std::memcpy(bytes, &value, sizeof value); }

unsigned load_u8(const std::byte* bytes) { return std::to_integer<unsigned>(*bytes); }

void put_scales(std::byte* line, std::size_t lines, std::size_t row, const std::uint16_t* scales) {
  for (std::size_t l = 0; l < lines; ++l)
    store_u16(line + kScaleLineBytes * l + 2 * row, scales[l]);
}
void get_scales(const std::byte* line, std::size_t lines, std::size_t row, std::uint16_t* scales) {
  for (std::size_t l = 0; l < lines; ++l)
    scales[l] = load_u16(line + kScaleLineBytes * l + 2 * row);
}

// A row of a row block, as a part of its groups from a super-block's start on.
struct RowPart {
  std::size_t groups, row;
  std::size_t lines;  // scale lines of a group
  std::uint32_t flags;
};

// Where the parts of a t1 super-block of r groups lie.
struct T1Block {
  std::size_t r, lines;
  std::size_t scale(std::size_t g) const { return kScaleLineBytes * lines * g; }
  std::size_t tail(std::size_t t, std::size_t row) const {
    return scale(r) + kDwordsBytes * t + 4 * row;
  }
  std::size_t body(std::size_t g, std::size_t c, std::size_t row) const {
    return scale(r) + kT1TailBytes + kT1CodeBytes * g + kDwordsBytes * c + 4 * row;
  }
  std::size_t bytes() const { return scale(r) + kT1TailBytes + kT1CodeBytes * r; }
};

void pack_t2_row(const RowPart& part, const std::uint8_t* codes, const std::uint16_t* scales,
                 std::byte* body) {
  for (std::size_t g = 0; g < part.groups; ++g, codes += kGroup, scales += part.lines) {
    put_scales(body, part.lines, part.row, scales);
    body += kScaleLineBytes * part.lines;
    for (std::size_t c = 0; c < kT2Dwords; ++c) {
      for (std::size_t j = 0; j < 4; ++j) {
        const std::uint8_t* const first = codes + 16 * c + j;
        const unsigned byte = first[0] | first[4] << 2 | first[8] << 4 | first[12] << 6;
        body[kDwordsBytes * c + 4 * part.row + j] = static_cast<std::byte>(byte);
      }
    }
    body += kT2CodeBytes;
  }
}

bool unpack_t2_row(const RowPart& part, const std::byte* body, std::uint8_t* codes,
                   std::uint16_t* scales) {
  bool sound = true;
  for (std::size_t g = 0; g < part.groups; ++g, codes += kGroup, scales += part.lines) {
    get_scales(body, part.lines, part.row, scales);
    body += kScaleLineBytes * part.lines;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::size_t c = i / 16, p = i % 16 / 4, j = i % 4;
      const unsigned byte = load_u8(body + kDwordsBytes * c + 4 * part.row + j);
      codes[i] = static_cast<std::uint8_t>(byte >> 2 * p & 3);
      sound &= codes[i] != 3;
    }
    body += kT2CodeBytes;
  }
  return sound;
}

void pack_t1_row(const RowPart& part, const std::uint8_t* codes, const std::uint16_t* scales,
                 std::byte* body) {
  const std::size_t row = part.row;
  for (std::size_t first = 0; first < part.groups; first += kT1Groups) {
    const T1Block block{std::min(kT1Groups, part.groups - first), part.lines};
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t j = 0; j < 4; ++j) {
        unsigned d[kT1Groups] = {1, 1, 1, 1, 1};
        for (std::size_t g = 0; g < block.r; ++g) d[g] = codes[kGroup * g + kT1Body + 4 * t + j];
        body[block.tail(t, row) + j] = std::byte{t1_byte(d[0], d[1], d[2], d[3], d[4])};
      }
    }
    for (std::size_t g = 0; g < block.r; ++g, scales += part.lines) {
      put_scales(body + block.scale(g), part.lines, row, scales);
      for (std::size_t c = 0; c < kT1Dwords; ++c) {
        for (std::size_t j = 0; j < 4; ++j) {
          const std::uint8_t* const d = codes + kGroup * g + 20 * c + j;
          body[block.body(g, c, row) + j] = std::byte{t1_byte(d[0], d[4], d[8], d[12], d[16])};
        }
      }
    }
    body += block.bytes();
    codes += kGroup * block.r;
  }
}

bool unpack_t1_row(const RowPart& part, const std::byte* body, std::uint8_t* codes,
                   std::uint16_t* scales) {
  const std::size_t row = part.row;
  bool sound = true;
  for (std::size_t first = 0; first < part.groups; first += kT1Groups) {
    const T1Block block{std::min(kT1Groups, part.groups - first), part.lines};
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t j = 0; j < 4; ++j) {
        const auto byte = static_cast<std::uint8_t>(body[block.tail(t, row) + j]);
        const auto digits = t1_digits(byte);
        sound &= t1_byte_exists(byte);
        for (std::size_t d = 0; d < block.r; ++d)
          codes[kGroup * d + kT1Body + 4 * t + j] = digits[d];
        for (std::size_t d = block.r; d < kT1Groups; ++d) sound &= digits[d] == 1;
      }
    }
    for (std::size_t g = 0; g < block.r; ++g, scales += part.lines) {
      get_scales(body + block.scale(g), part.lines, row, scales);
      for (std::size_t c = 0; c < kT1Dwords; ++c) {
        for (std::size_t j = 0; j < 4; ++j) {
          const auto byte = static_cast<std::uint8_t>(body[block.body(g, c, row) + j]);
          const auto digits = t1_digits(byte);
          sound &= t1_byte_exists(byte);
          for (std::size_t d = 0; d < kT1Groups; ++d)
            codes[kGroup * g + 20 * c + 4 * d + j] = digits[d];
        }
      }
    }
    body += block.bytes();
    codes += kGroup * block.r;
  }
  return sound;
}

// Where a quad of s34 lies in a group's codes.
struct S34Place {
  std::size_t byte;  // of its nibble
  unsigned shift;
  std::size_t sign_byte;
  unsigned sign_bit;
};
S34Place s34_place(std::size_t row, std::size_t q) {
  const std::size_t j = q % 4, bit = 4 * row + j;
  return {kDwordsBytes * (q / 8) + 4 * row + j, q / 4 % 2 == 0 ? 0u : 4u,
          kS34NibbleBytes + kS34SignBytes * (q / 4) + bit / 8, static_cast<unsigned>(bit % 8)};
}

// The group's bytes of nibbles and signs are 0 before.
void pack_s34_row(const RowPart& part, const std::uint8_t* codes, const std::uint16_t* scales,
                  std::byte* body) {
  for (std::size_t g = 0; g < part.groups; ++g, codes += kGroup, scales += part.lines) {
    put_scales(body, part.lines, part.row, scales);
    body += kScaleLineBytes * part.lines;
    for (std::size_t q = 0; q < kS34Quads; ++q) {
      std::array<std::uint8_t, 4> lanes;
      for (std::size_t p = 0; p < 4; ++p) lanes[p] = codes[s34_input(part.flags, q, p)];
      const unsigned quad = s34_quad(lanes);
      assert(s34_codes(quad) == lanes || std::ranges::count(lanes, 1) == 4);
      const S34Place place = s34_place(part.row, q);
      body[place.byte] |= static_cast<std::byte>((quad & 15) << place.shift);
      body[place.sign_byte] |= static_cast<std::byte>(quad >> 4 << place.sign_bit);
    }
    body += kS34CodeBytes;
  }
}

void unpack_s34_row(const RowPart& part, const std::byte* body, std::uint8_t* codes,
                    std::uint16_t* scales) {
  for (std::size_t g = 0; g < part.groups; ++g, codes += kGroup, scales += part.lines) {
    get_scales(body, part.lines, part.row, scales);
    body += kScaleLineBytes * part.lines;
    for (std::size_t q = 0; q < kS34Quads; ++q) {
      const auto lanes = s34_codes(s34_quad_at(body, part.row, q));
      for (std::size_t p = 0; p < 4; ++p) codes[s34_input(part.flags, q, p)] = lanes[p];
    }
    body += kS34CodeBytes;
  }
}

bool unpack_groups(Encoding encoding, const RowPart& part, const std::byte* body,
                   std::uint8_t* codes, std::uint16_t* scales) {
  if (encoding == Encoding::t2) return unpack_t2_row(part, body, codes, scales);
  if (encoding == Encoding::t1) return unpack_t1_row(part, body, codes, scales);
  assert(encoding == Encoding::s34);
  unpack_s34_row(part, body, codes, scales);
  return true;
}

void decode_ternary_row(const Shape& shape, const TensorBytes& bytes, std::uint64_t row,
                        std::uint64_t first, std::span<float> values) {
  // Five groups at a time: a super-block of t1, and as good for the others.
  constexpr std::uint64_t kPart = kT1Groups * kGroup;
  const std::byte* const block = bytes.body.data() + row / kRowBlock * row_block_bytes(shape);
  Shape part_shape = shape;
  part_shape.cols = kPart;
  const std::uint64_t part_bytes = row_block_bytes(part_shape);
  const std::uint64_t stored = padded_cols(shape.encoding, shape.cols);
  const std::uint64_t end = first + values.size();
  const std::size_t lines = scale_lines(shape);
  std::uint8_t codes[kPart];
  std::uint16_t scales[2 * kT1Groups];
  for (std::uint64_t start = first / kPart * kPart; start < end; start += kPart) {
    const std::size_t groups = std::min(kPart, stored - start) / kGroup;
    unpack_groups(shape.encoding, {groups, row % kRowBlock, lines, shape.flags},
                  block + start / kPart * part_bytes, codes, scales);
    for (std::uint64_t col = std::max(first, start); col < std::min(end, start + kPart); ++col) {
      const int weight = static_cast<int>(codes[col - start]) - 1;
      const float scale = shape.scale_kind == ScaleKind::per_row ? bytes.scales[row]
                          : shape.scale_kind == ScaleKind::per_tensor
                              ? bytes.scales[0]
                              : f16_to_f32(scales[(col - start) * lines / kGroup]);
      values[col - first] = static_cast<float>(weight) * scale;
    }
  }
}

float dense_value(Encoding encoding, bool minimum, const std::byte* row, std::uint64_t col) {
  const std::size_t i = col % kDenseBlock;
  switch (encoding) {
    case Encoding::f32: {
      float value;
      std::memcpy(&value, row + 4 * col, sizeof value);
      return value;
    }
    case Encoding::f16:
      return f16_to_f32(load_u16(row + 2 * col));
    case Encoding::bf16:
      return bf16_to_f32(load_u16(row + 2 * col));
    case Encoding::q8: {
      const std::byte* const block = row + col / kDenseBlock * 34;
      const auto code = static_cast<std::int8_t>(block[2 + i]);
      return static_cast<float>(code) * f16_to_f32(load_u16(block));
    }
    case Encoding::q4: {
      const std::byte* const block = row + col / kDenseBlock * (minimum ? 20 : 18);
      const float d = f16_to_f32(load_u16(block));
      if (minimum) {
        const float product = static_cast<float>(q4_code(block + 4, i)) * d;
        return product + f16_to_f32(load_u16(block + 2));
      }
      return static_cast<float>(static_cast<int>(q4_code(block + 2, i)) - 8) * d;
    }
    case Encoding::t2:
    case Encoding::t1:
    case Encoding::s34:
      break;
  }
  assert(false);
  return 0;
}

// Bytes of a group's codes in a row block; t1 has its tail beside them.
std::uint64_t code_bytes(Encoding encoding) {
  if (encoding == Encoding::t2) return kT2CodeBytes;
  if (encoding == Encoding::t1) return kT1CodeBytes;
  assert(encoding == Encoding::s34);
  return kS34CodeBytes;
}

}  // namespace

const char* encoding_name(Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return "f32";
    case Encoding::f16:
      return "f16";
    case Encoding::bf16:
      return "bf16";
    case Encoding::q8:
      return "q8";
    case Encoding::q4:
      return "q4";
    case Encoding::t2:
      return "t2";
    case Encoding::t1:
      return "t1";
    case Encoding::s34:
      return "s34";
  }
  return "unknown";
}

bool is_ternary(Encoding encoding) {
  return encoding == Encoding::t2 || encoding == Encoding::t1 || encoding == Encoding::s34;
}

std::uint64_t padded_cols(Encoding encoding, std::uint64_t cols) {
  return round_up(cols, is_ternary(encoding) ? kGroup : kDenseBlock);
}

std::uint64_t padded_rows(Encoding encoding, std::uint64_t rows) {
  return is_ternary(encoding) ? round_up(rows, kRowBlock) : rows;
}

std::uint32_t group_size(const Shape& shape) {
  if (shape.encoding == Encoding::q8 || shape.encoding == Encoding::q4) return kDenseBlock;
  if (shape.scale_kind != ScaleKind::per_group) return 0;
  return (shape.flags & kFlagHalfGroups) != 0 ? kGroup / 2 : kGroup;
}

std::uint64_t dense_row_bytes(Encoding encoding, std::uint32_t flags, std::uint64_t cols) {
  const std::uint64_t padded = padded_cols(encoding, cols);
  switch (encoding) {
    case Encoding::f32:
      return 4 * padded;
    case Encoding::f16:
    case Encoding::bf16:
      return 2 * padded;
    case Encoding::q8:
      return padded / kDenseBlock * 34;
    case Encoding::q4:
      return padded / kDenseBlock * ((flags & kFlagMinimum) != 0 ? 20 : 18);
    case Encoding::t2:
    case Encoding::t1:
    case Encoding::s34:
      break;
  }
  assert(false);
  return 0;
}

std::size_t scale_lines(const Shape& shape) {
  if (shape.scale_kind != ScaleKind::per_group) return 0;
  return (shape.flags & kFlagHalfGroups) != 0 ? 2 : 1;
}

std::uint64_t row_block_bytes(const Shape& shape) {
  const std::uint64_t groups = padded_cols(shape.encoding, shape.cols) / kGroup;
  const std::uint64_t bytes =
      groups * (kScaleLineBytes * scale_lines(shape) + code_bytes(shape.encoding));
  if (shape.encoding != Encoding::t1) return bytes;
  return bytes + (groups + kT1Groups - 1) / kT1Groups * kT1TailBytes;
}

std::optional<std::uint64_t> body_bytes(const Shape& shape) {
  // Padded sizes and a row's bytes must not wrap: no row is longer than 2^59 inputs of at most 4
  // bytes, no matrix higher than 2^63 rows.
  if (shape.cols > std::uint64_t{1} << 59 || shape.rows > std::uint64_t{1} << 63)
    return std::nullopt;
  if (!is_ternary(shape.encoding))
    return checked_mul(shape.rows, dense_row_bytes(shape.encoding, shape.flags, shape.cols));
  return checked_mul(padded_rows(shape.encoding, shape.rows) / kRowBlock, row_block_bytes(shape));
}

std::optional<std::uint64_t> scale_bytes(const Shape& shape) {
  if (shape.scale_kind == ScaleKind::per_tensor) return 4;
  if (shape.scale_kind != ScaleKind::per_row) return 0;
  const auto rows = checked_round_up(shape.rows, kRowBlock);
  return rows ? checked_mul(*rows, 4) : std::nullopt;
}

unsigned s34_quad_at(const std::byte* codes, std::size_t row, std::size_t q) {
  const S34Place place = s34_place(row, q);
  const unsigned nibble = load_u8(codes + place.byte) >> place.shift & 15;
  return nibble | (load_u8(codes + place.sign_byte) >> place.sign_bit & 1) << 4;
}

unsigned q4_code(const std::byte* codes, std::size_t i) {
  return i < 16 ? load_u8(codes + i) & 15 : load_u8(codes + i - 16) >> 4;
}

void pack_row_block(const Shape& shape, const std::uint8_t* codes, const std::uint16_t* scales,
                    std::byte* body) {
  const std::uint64_t padded = padded_cols(shape.encoding, shape.cols), groups = padded / kGroup;
  const std::size_t lines = scale_lines(shape);
  if (shape.encoding == Encoding::s34) std::fill_n(body, row_block_bytes(shape), std::byte{0});
  for (std::size_t row = 0; row < kRowBlock; ++row, codes += padded, scales += groups * lines) {
    const RowPart part{groups, row, lines, shape.flags};
    if (shape.encoding == Encoding::s34) {
      pack_s34_row(part, codes, scales, body);
    } else if (shape.encoding == Encoding::t2) {
      pack_t2_row(part, codes, scales, body);
    } else {
      assert(shape.encoding == Encoding::t1);
      pack_t1_row(part, codes, scales, body);
    }
  }
}

bool unpack_row_block(const Shape& shape, const std::byte* body, std::uint8_t* codes,
                      std::uint16_t* scales) {
  const std::uint64_t padded = padded_cols(shape.encoding, shape.cols), groups = padded / kGroup;
  const std::size_t lines = scale_lines(shape);
  bool sound = true;
  for (std::size_t row = 0; row < kRowBlock; ++row, codes += padded, scales += groups * lines)
    sound &= unpack_groups(shape.encoding, {groups, row, lines, shape.flags}, body, codes, scales);
  return sound;
}

bool unpack_row(const Shape& shape, std::span<const std::byte> body, std::uint64_t row,
                std::uint8_t* codes, std::uint16_t* scales) {
  assert(is_ternary(shape.encoding) && row < shape.rows);
  const std::byte* const block = body.data() + row / kRowBlock * row_block_bytes(shape);
  const std::size_t groups = padded_cols(shape.encoding, shape.cols) / kGroup;
  return unpack_groups(shape.encoding, {groups, row % kRowBlock, scale_lines(shape), shape.flags},
                       block, codes, scales);
}

std::uint8_t ternary_code(const Shape& shape, const std::byte* body, std::uint64_t row,
                          std::uint64_t col) {
  const std::size_t lines = scale_lines(shape);
  std::uint64_t g = col / kGroup;
  const std::uint64_t i = col % kGroup;
  if (shape.encoding == Encoding::t2) {
    const std::byte* const group = body + g * (kScaleLineBytes * lines + kT2CodeBytes);
    const std::byte* const dwords = group + kScaleLineBytes * lines;
    return static_cast<std::uint8_t>(
        load_u8(dwords + kDwordsBytes * (i / 16) + 4 * row + i % 4) >> 2 * (i % 16 / 4) & 3);
  }
  assert(shape.encoding == Encoding::t1);
  const std::uint64_t groups = padded_cols(shape.encoding, shape.cols) / kGroup;
  const std::uint64_t first = g / kT1Groups * kT1Groups;
  const T1Block block{std::min<std::size_t>(kT1Groups, groups - first), lines};
  const std::byte* const part = body + first / kT1Groups * T1Block{kT1Groups, lines}.bytes();
  g -= first;
  if (i >= kT1Body) {
    const std::uint64_t rest = i - kT1Body;
    return t1_digits(static_cast<std::uint8_t>(part[block.tail(rest / 4, row) + rest % 4]))[g];
  }
  const std::uint64_t d = i % 20 / 4;
  return t1_digits(static_cast<std::uint8_t>(part[block.body(g, i / 20, row) + i % 4]))[d];
}

void decode_row(const Shape& shape, const TensorBytes& bytes, std::uint64_t row, float* values) {
  decode_row_part(shape, bytes, row, 0, {values, static_cast<std::size_t>(shape.cols)});
}

void decode_row_part(const Shape& shape, const TensorBytes& bytes, std::uint64_t row,
                     std::uint64_t first, std::span<float> values) {
  assert(row < shape.rows && first <= shape.cols && values.size() <= shape.cols - first);
  if (is_ternary(shape.encoding)) return decode_ternary_row(shape, bytes, row, first, values);
  const bool minimum = (shape.flags & kFlagMinimum) != 0;
  const std::byte* const row_bytes =
      bytes.body.data() + row * dense_row_bytes(shape.encoding, shape.flags, shape.cols);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = dense_value(shape.encoding, minimum, row_bytes, first + i);
}

}  // namespace tsq::format
