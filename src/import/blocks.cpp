#include "import/blocks.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <vector>

#include "import/block_codecs.h"

namespace tsq::importer {
namespace {

struct TypeInfo {
  SourceType type;
  const char* name;
  BlockShape shape;
  std::uint32_t scale_group = 0;      // 0: dense
  int scale = -1, second_scale = -1;  // bytes of the block where fp16 scales or minima lie
  bool plus_2 = false;                // code 3 is +2
  std::uint32_t row_header = 0;       // bytes before a row's blocks: its scale
};

constexpr TypeInfo kTypes[] = {
    {SourceType::f32, "F32", {1, 4}},
    {SourceType::f16, "F16", {1, 2}},
    {SourceType::bf16, "BF16", {1, 2}},
    {SourceType::q8_0, "Q8_0", {32, 34}, 0, 0},
    {SourceType::q4_0, "Q4_0", {32, 18}, 0, 0},
    {SourceType::q4_1, "Q4_1", {32, 20}, 0, 0, 2},
    {SourceType::q5_0, "Q5_0", {32, 22}, 0, 0},
    {SourceType::q5_1, "Q5_1", {32, 24}, 0, 0, 2},
    {SourceType::q4_k, "Q4_K", {256, 144}, 0, 0, 2},
    {SourceType::q5_k, "Q5_K", {256, 176}, 0, 0, 2},
    {SourceType::q6_k, "Q6_K", {256, 210}, 0, 208},
    {SourceType::pq2_0, "PQ2_0", {128, 34}, 128, 0, -1, true},
    {SourceType::ptq1_0, "PTQ1_0", {128, 28}, 128, 26},
    {SourceType::tq1_0, "TQ1_0", {256, 54}, 128, 52},
    {SourceType::tq2_0, "TQ2_0", {256, 66}, 128, 64, -1, true},
    {SourceType::q1_0, "Q1_0", {128, 18}, 128, 0},
    {SourceType::q2_0, "Q2_0", {64, 18}, 64, 0, -1, true},
    {SourceType::stq1_0, "STQ1_0", {256, 42}, 128, 40},
    {SourceType::stq1_0_consecutive, "STQ1_0 (consecutive)", {256, 42}, 128, 40},
    {SourceType::i2_s, "I2_S", {128, 32}, 128},
    {SourceType::i2_s_64, "I2_S (64)", {64, 16}, 64},
    {SourceType::iq1_bn, "IQ1_BN", {64, 13}, 64, -1, -1, false, 2},
    {SourceType::iq2_bn, "IQ2_BN", {64, 16}, 64, -1, -1, false, 4},
    {SourceType::t2, "t2", {128, 34}, 128},  // a row's share of a row block
    {SourceType::t1, "t1", {640, 138}, 128},
    {SourceType::s34, "s34", {128, 22}, 128},
    {SourceType::packed_u8, "U8 (packed ternary)", {128, 32}, 128},
};

constexpr const TypeInfo& info(SourceType type) { return kTypes[static_cast<std::size_t>(type)]; }

static_assert([] {
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}());

// The encoding whose row blocks hold the rows of this type.
std::optional<format::Encoding> row_block_encoding(SourceType type) {
  if (type == SourceType::t2) return format::Encoding::t2;
  if (type == SourceType::t1) return format::Encoding::t1;
  if (type == SourceType::s34) return format::Encoding::s34;
  return std::nullopt;
}

bool decode_row_of_block(const Tensor& tensor, format::Encoding encoding, std::uint64_t row,
                         std::uint8_t* codes, std::uint16_t* scales) {
  const format::Shape shape{encoding, tensor.flags, scale_kind(tensor), tensor.rows(),
                            tensor.cols()};
  const auto cols = static_cast<std::size_t>(tensor.cols());
  const std::size_t n_scales = scales_a_row(tensor);
  if (const auto scale = row_scale(tensor, row)) {
    std::fill_n(scales, n_scales, f32_to_f16(*scale));
  }
  if (cols % format::kGroup == 0) {
    return format::unpack_row(shape, tensor.data, row, codes, scales);
  }
  const auto padded = static_cast<std::size_t>(format::padded_cols(encoding, cols));
  std::vector<std::uint8_t> padded_codes(padded);
  std::vector<std::uint16_t> padded_scales(padded / format::kGroup * format::scale_lines(shape));
  const bool sound =
      format::unpack_row(shape, tensor.data, row, padded_codes.data(), padded_scales.data());
  std::copy_n(padded_codes.begin(), cols, codes);
  std::copy_n(padded_scales.begin(), std::min(n_scales, padded_scales.size()), scales);
  return sound;
}

bool is_finite_f16(const std::byte* p) { return (load<std::uint16_t>(p) & 0x7c00u) != 0x7c00u; }

// Where a row lies in the data.
std::uint64_t stored_row(const Tensor& tensor, std::uint64_t row) {
  if (tensor.head_rows == 0) return tensor.tiled_rows.stored(row);
  const std::uint64_t in_head = row % tensor.head_rows;
  return row - in_head + in_head / 2 + in_head % 2 * (tensor.head_rows / 2);
}

// From the order of the data to that of the columns; each value stands for so many of these.
template <class T>
void order_columns(const TiledHeads& heads, std::span<T> values, std::size_t columns) {
  if (!heads) return;
  assert(heads.first == 0 && heads.size % columns == 0);
  const std::vector<T> stored(values.begin(), values.end());
  const auto size = static_cast<std::size_t>(heads.size) / columns;
  for (std::size_t i = 0; i < values.size(); i += size) {
    const auto from = static_cast<std::size_t>(heads.stored(i * columns)) / columns;
    std::ranges::copy(std::span(stored).subspan(from, size), values.data() + i);
  }
}

// The values of a type whose block is one number.
bool is_finite_value(SourceType type, const std::byte* p) {
  if (type == SourceType::f32) return (load<std::uint32_t>(p) & 0x7f800000u) != 0x7f800000u;
  if (type == SourceType::bf16) return (load<std::uint16_t>(p) & 0x7f80u) != 0x7f80u;
  return is_finite_f16(p);
}

}  // namespace

BlockShape block_shape(SourceType type) { return info(type).shape; }
const char* source_type_name(SourceType type) { return info(type).name; }
bool is_ternary(SourceType type) { return info(type).scale_group != 0; }

std::uint32_t scale_group(const Tensor& tensor) {
  if (!is_ternary(tensor.type)) return format::kGroup;
  const bool halves =
      tensor.type == SourceType::t2 && (tensor.flags & format::kFlagHalfGroups) != 0;
  return halves ? format::kGroup / 2 : info(tensor.type).scale_group;
}

format::ScaleKind scale_kind(const Tensor& tensor) {
  const SourceType type = tensor.type;
  if (type == SourceType::i2_s || type == SourceType::i2_s_64 || type == SourceType::packed_u8 ||
      tensor.scales.size() == 1) {
    return format::ScaleKind::per_tensor;
  }
  const bool of_rows = info(type).row_header != 0 || !tensor.scales.empty();
  return of_rows ? format::ScaleKind::per_row : format::ScaleKind::per_group;
}

bool can_hold_plus_2(SourceType type) { return info(type).plus_2; }

std::uint32_t row_header_bytes(SourceType type) { return info(type).row_header; }

std::uint64_t row_bytes(SourceType type, std::uint64_t cols) {
  if (const auto encoding = row_block_encoding(type)) {
    return format::row_block_bytes({*encoding, 0, format::ScaleKind::per_group, 1, cols}) /
           format::kRowBlock;
  }
  const BlockShape shape = block_shape(type);
  return row_header_bytes(type) + (cols + shape.weights - 1) / shape.weights * shape.bytes;
}

std::span<const std::byte> row_data(const Tensor& tensor, std::uint64_t row) {
  std::uint64_t bytes = row_bytes(tensor.type, tensor.cols());
  std::uint64_t stored = stored_row(tensor, row);
  if (tensor.type == SourceType::packed_u8) {
    bytes = tensor.cols();
    stored %= tensor.rows() / 4;
  }
  const std::uint64_t stride = tensor.row_stride != 0 ? tensor.row_stride : bytes;
  return tensor.data.subspan(static_cast<std::size_t>(stored * stride),
                             static_cast<std::size_t>(bytes));
}

void copy_row(const Tensor& tensor, std::uint64_t row, std::byte* out) {
  const auto data = row_data(tensor, row);
  std::ranges::copy(data, out);
  if (!tensor.tiled_cols) return;
  const BlockShape shape = block_shape(tensor.type);
  const std::uint64_t size = tensor.tiled_cols.size;
  const auto bytes = static_cast<std::size_t>(size / shape.weights * shape.bytes);
  for (std::uint64_t col = 0; col < tensor.cols(); col += size, out += bytes) {
    const auto from = static_cast<std::size_t>(tensor.tiled_cols.stored(col) / size) * bytes;
    std::ranges::copy(data.subspan(from, bytes), out);
  }
}

std::optional<float> row_scale(const Tensor& tensor, std::uint64_t row) {
  switch (tensor.type) {
    case SourceType::i2_s:
    case SourceType::i2_s_64:
    case SourceType::packed_u8:
      return tensor.scale;
    case SourceType::iq1_bn:
      return load_f16(row_data(tensor, row).data());
    case SourceType::iq2_bn:
      return load<float>(row_data(tensor, row).data());
    case SourceType::t2:
    case SourceType::t1:
    case SourceType::s34:
      if (tensor.scales.empty()) return std::nullopt;
      return tensor.scales[tensor.scales.size() == 1 ? 0 : static_cast<std::size_t>(row)];
    default:
      return std::nullopt;
  }
}

bool decode_ternary_row(const Tensor& tensor, std::uint64_t row, std::uint8_t* codes,
                        std::uint16_t* scales) {
  if (const auto encoding = row_block_encoding(tensor.type)) {
    return decode_row_of_block(tensor, *encoding, row, codes, scales);
  }
  const TypeInfo& type = info(tensor.type);
  const std::byte* block = row_data(tensor, row).data() + type.row_header;
  const auto cols = static_cast<std::size_t>(tensor.cols());
  if (const auto scale = row_scale(tensor, row)) {
    std::fill_n(scales, cols / type.scale_group, f32_to_f16(*scale));
  }
  if (tensor.type == SourceType::packed_u8) {
    const std::uint64_t quarter = stored_row(tensor, row) / (tensor.rows() / 4);
    decode_packed_row(row_data(tensor, row), static_cast<unsigned>(quarter), codes);
  } else {
    for (std::size_t col = 0; col < cols; col += type.shape.weights, block += type.shape.bytes) {
      decode_ternary_block(tensor.type, block, codes + col, scales + col / type.scale_group);
    }
  }
  order_columns(tensor.tiled_cols, std::span(codes, cols), 1);
  if (scale_kind(tensor) == format::ScaleKind::per_group) {
    order_columns(tensor.tiled_cols, std::span(scales, scales_a_row(tensor)), type.scale_group);
  }
  std::uint8_t both_bits = 0;
  for (std::size_t i = 0; i < cols; ++i) {
    both_bits |= static_cast<std::uint8_t>(codes[i] & (codes[i] >> 1));
  }
  return (both_bits & 1) == 0;
}

std::size_t scales_a_row(const Tensor& tensor) {
  const std::uint64_t group = scale_group(tensor);
  return static_cast<std::size_t>((tensor.cols() + group - 1) / group);
}

bool row_is_finite(const Tensor& tensor, std::uint64_t row) {
  if (row_block_encoding(tensor.type)) return true;  // verified when the file was opened
  const TypeInfo& type = info(tensor.type);
  if (const auto scale = row_scale(tensor, row)) return std::isfinite(*scale);
  bool finite = true;
  const auto data = row_data(tensor, row);
  for (std::size_t at = 0; at < data.size(); at += type.shape.bytes) {
    const std::byte* const block = data.data() + at;
    if (type.shape.weights == 1) finite &= is_finite_value(tensor.type, block);
    if (type.scale >= 0) finite &= is_finite_f16(block + type.scale);
    if (type.second_scale >= 0) finite &= is_finite_f16(block + type.second_scale);
  }
  return finite;
}

void decode_row(const Tensor& tensor, std::uint64_t row, float* values) {
  const TypeInfo& type = info(tensor.type);
  const auto cols = static_cast<std::size_t>(tensor.cols());
  if (!is_ternary(tensor.type)) {
    const std::byte* block = row_data(tensor, row).data();
    std::size_t col = 0;
    for (; col + type.shape.weights <= cols; col += type.shape.weights) {
      decode_dense_block(tensor.type, block, values + col);
      block += type.shape.bytes;
    }
    if (col < cols) {  // of a .tsq file: its last block is padded
      std::vector<float> last(type.shape.weights);
      decode_dense_block(tensor.type, block, last.data());
      std::copy_n(last.begin(), cols - col, values + col);
    }
    order_columns(tensor.tiled_cols, std::span(values, cols), 1);
    return;
  }
  std::vector<std::uint8_t> codes(cols);
  std::vector<std::uint16_t> scales(scales_a_row(tensor));
  decode_ternary_row(tensor, row, codes.data(), scales.data());
  const auto of_row = row_scale(tensor, row);
  const std::size_t group = scale_group(tensor);
  for (std::size_t i = 0; i < cols; ++i) {
    const float scale = of_row ? *of_row : f16_to_f32(scales[i / group]);
    values[i] = static_cast<float>(codes[i] - 1) * scale;
  }
}

}  // namespace tsq::importer
