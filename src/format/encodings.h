// The encodings of a .tsq tensor: how codes lie, how many bytes they take, and the plain codec of
// each. Drawn byte by byte in FORMAT.md; the kernels have their own decoders, tested against these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tsq::format {

inline constexpr std::size_t kGroup = 128;      // inputs of a ternary group
inline constexpr std::size_t kRowBlock = 32;    // rows interleaved in a ternary body
inline constexpr std::size_t kDenseBlock = 32;  // inputs of a q8 or q4 block; dense rows pad to it
inline constexpr std::size_t kT1Groups = 5;     // groups of a t1 super-block

// Parts of a block of 32 rows. The codes of a group come behind its scale lines, if it has any.
inline constexpr std::size_t kScaleLineBytes =
    2 * kRowBlock;                                          // fp16 scales of a group or half group
inline constexpr std::size_t kDwordsBytes = 4 * kRowBlock;  // one dword of each row
inline constexpr std::size_t kT2CodeBytes = 8 * kDwordsBytes;
inline constexpr std::size_t kT1CodeBytes = 6 * kDwordsBytes;
inline constexpr std::size_t kT1TailBytes = 2 * kDwordsBytes;  // of a super-block
inline constexpr std::size_t kS34Quads = kGroup / 4;           // quads of a row and group
inline constexpr std::size_t kS34NibbleBytes = 4 * kDwordsBytes;
inline constexpr std::size_t kS34SignBytes = kRowBlock / 2;  // one bit a quad, of four quads a row
inline constexpr std::size_t kS34CodeBytes = kS34NibbleBytes + 8 * kS34SignBytes;

// The numbers stand in files.
enum class Encoding : std::uint32_t {
  f32 = 0,
  f16 = 1,
  bf16 = 2,
  q8 = 3,
  q4 = 4,
  t2 = 16,
  t1 = 17,
  s34 = 18
};
enum class StorageEncoding : std::uint32_t { plain = 0, rle = 1, mask = 2, zstd = 3 };
enum class ScaleKind : std::uint32_t {
  none = 0,        // dense: any scale lies in the block
  per_group = 1,   // ternary: fp16 lines in the body
  per_row = 2,     // ternary: f32 side array, one a padded row
  per_tensor = 3,  // ternary: f32 side array of one
};
enum class ActivationQuant : std::uint32_t { none = 0, per_group = 1, per_token = 2 };

// Bits of a tensor record's flags.
inline constexpr std::uint32_t kFlagMinimum = 1u << 0;     // q4 blocks carry an fp16 minimum
inline constexpr std::uint32_t kFlagHalfGroups = 1u << 1;  // two scale lines per 128 inputs
inline constexpr std::uint32_t kFlagStride16 = 1u << 2;    // s34 quads are 64c + loc + 16p
inline constexpr std::uint32_t kFlagFusedResidual = 1u << 3;

const char* encoding_name(Encoding encoding);
bool is_ternary(Encoding encoding);

// A matrix's shape and how it is stored: all that its size depends on.
struct Shape {
  Encoding encoding;
  std::uint32_t flags;
  ScaleKind scale_kind;
  std::uint64_t rows;  // outputs, as named; stored rows are padded
  std::uint64_t cols;  // inputs, as named; stored columns are padded
};

std::uint64_t padded_cols(Encoding encoding, std::uint64_t cols);
std::uint64_t padded_rows(Encoding encoding, std::uint64_t rows);
// Inputs that share a scale, as the record says it: 0 where none do.
std::uint32_t group_size(const Shape& shape);
// Bytes of the body and of the scale side array (0 without one). Nothing where they wrap.
std::optional<std::uint64_t> body_bytes(const Shape& shape);
std::optional<std::uint64_t> scale_bytes(const Shape& shape);
// Bytes of one dense row, and of one block of 32 rows (ternary).
std::uint64_t dense_row_bytes(Encoding encoding, std::uint32_t flags, std::uint64_t cols);
std::uint64_t row_block_bytes(const Shape& shape);
// Scale lines of a ternary group: 1, of half groups 2, of scales in a side array 0.
std::size_t scale_lines(const Shape& shape);

// The byte of five codes, most significant first, each 0 to 2: ceil(256 q / 243).
constexpr std::uint8_t t1_byte(unsigned d0, unsigned d1, unsigned d2, unsigned d3, unsigned d4) {
  const unsigned q = 81 * d0 + 27 * d1 + 9 * d2 + 3 * d3 + d4;
  return static_cast<std::uint8_t>((256 * q + 242) / 243);
}
// Its five digits; a byte that t1_byte never gives decodes too.
constexpr std::array<std::uint8_t, 5> t1_digits(std::uint8_t byte) {
  std::array<std::uint8_t, 5> digits{};
  unsigned v = byte;
  for (auto& digit : digits) {
    digit = static_cast<std::uint8_t>(3 * v >> 8);
    v = 3 * v & 255;
  }
  return digits;
}
constexpr bool t1_byte_exists(std::uint8_t byte) {
  const auto d = t1_digits(byte);
  return t1_byte(d[0], d[1], d[2], d[3], d[4]) == byte;
}

// A quad of s34: bits 0 to 3 its nibble, bit 4 its sign. The codes of its four lanes.
constexpr std::array<std::uint8_t, 4> s34_codes(unsigned quad) {
  const unsigned zero = quad >> 2 & 3, negate = quad >> 4 & 1;
  const unsigned minus[] = {negate, (quad & 1) ^ negate, (quad >> 1 & 1) ^ negate};
  std::array<std::uint8_t, 4> codes{};
  for (unsigned lane = 0, i = 0; lane < 4; ++lane)
    codes[lane] = lane == zero ? 1 : minus[i++] != 0 ? 0 : 2;
  return codes;
}
// The quad of four codes of which one is 1; of padding, where all four are, it is 0.
constexpr unsigned s34_quad(const std::array<std::uint8_t, 4>& codes) {
  unsigned zero = 0;
  while (zero < 3 && codes[zero] != 1) ++zero;
  unsigned minus[3] = {};
  for (unsigned lane = 0, i = 0; lane < 4; ++lane)
    if (lane != zero) minus[i++] = codes[lane] == 0;
  return zero << 2 | (minus[0] ^ minus[1]) | (minus[0] ^ minus[2]) << 1 | minus[0] << 4;
}
// The input of the group that lane p of quad q is.
constexpr std::size_t s34_input(std::uint32_t flags, std::size_t q, std::size_t p) {
  return (flags & kFlagStride16) != 0 ? 64 * (q / 16) + q % 16 + 16 * p : 4 * q + p;
}
// Quad q of a row (below 32) of an s34 group, given its codes.
unsigned s34_quad_at(const std::byte* codes, std::size_t row, std::size_t q);

// Input i (0 to 31) of a q4 block, given its 16 code bytes.
unsigned q4_code(const std::byte* codes, std::size_t i);

// One block of 32 rows of a ternary shape, whose rows do not matter. codes: [32][padded cols], 0 1
// 2; scales: [32][groups][scale_lines] fp16 bits. Padding rows and columns are the caller's: code
// 1, scale 0 for rows. A quad of s34 holds exactly one 1, or is padding and holds four.
void pack_row_block(const Shape& shape, const std::uint8_t* codes, const std::uint16_t* scales,
                    std::byte* body);
// The inverse, but that padding quads of s34 come back as they are stored: 1 2 2 2. False if a code
// does not exist (t2 code 3; a t1 byte that no five digits give; a tail digit without a group that
// is not 1); codes and scales are then filled all the same.
bool unpack_row_block(const Shape& shape, const std::byte* body, std::uint8_t* codes,
                      std::uint16_t* scales);

// One row of a ternary tensor, in the same way: padded_cols codes, scale_lines scales for each
// group of them; row < shape.rows.
bool unpack_row(const Shape& shape, std::span<const std::byte> body, std::uint64_t row,
                std::uint8_t* codes, std::uint16_t* scales);

// The code of one weight of such a block of t2 or t1; row < 32, col < padded cols.
std::uint8_t ternary_code(const Shape& shape, const std::byte* body, std::uint64_t row,
                          std::uint64_t col);

// A tensor's bytes: its body and its side array of scales, if it has one.
struct TensorBytes {
  std::span<const std::byte> body;
  std::span<const float> scales = {};
};

// One row as f32 values, shape.cols of them; row < shape.rows, bytes of the sizes above.
void decode_row(const Shape& shape, const TensorBytes& bytes, std::uint64_t row, float* values);
// values.size() of its values, from input `first` on; reads no more of the body than the
// super-blocks (640 inputs) of a ternary row that they lie in.
void decode_row_part(const Shape& shape, const TensorBytes& bytes, std::uint64_t row,
                     std::uint64_t first, std::span<float> values);

}  // namespace tsq::format
