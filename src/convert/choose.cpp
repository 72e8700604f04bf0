#include "convert/choose.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/half.h"
#include "convert/ternary_values.h"
#include "import/blocks.h"

namespace tsq::convert {
namespace {

using format::Encoding;
using importer::SourceType;

bool is_f16(float value) { return f16_to_f32(f32_to_f16(value)) == value; }

bool fits_f16(const importer::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    importer::decode_row(tensor, row, values.data());
    if (!std::all_of(values.begin(), values.end(), is_f16)) return false;
  }
  return true;
}

// Bytes of 32 weights.
std::uint64_t block_bytes(Encoding encoding) { return format::dense_row_bytes(encoding, 0, 32); }

// A few taps a channel, which no matrix product reads.
bool is_convolution(const importer::Tensor& tensor) {
  return tensor.name.ends_with(".ssm_conv1d.weight");
}

Choice choose_dense(const importer::Tensor& tensor, DenseEncoding dense) {
  const auto own = own_encoding(tensor.type);
  const Fate whole = own ? Fate::kept : Fate::widened;
  if (tensor.n_dims == 1 || is_convolution(tensor)) return {Encoding::f32, whole};
  if (dense != DenseEncoding::keep && tensor.cols() % format::kDenseBlock == 0) {
    const Encoding narrow = dense == DenseEncoding::f16  ? Encoding::f16
                            : dense == DenseEncoding::q8 ? Encoding::q8
                                                         : Encoding::q4;
    if (!own || block_bytes(*own) > block_bytes(narrow)) {
      const bool exact = narrow == Encoding::f16 && fits_f16(tensor);
      return {narrow, exact ? whole : Fate::narrowed};
    }
  }
  if (own) {
    const bool minimum = tensor.type == SourceType::q4_1;
    return {*own, Fate::kept, minimum ? format::kFlagMinimum : 0};
  }
  return {fits_f16(tensor) ? Encoding::f16 : Encoding::f32, Fate::widened};
}

bool holds_code_3(const importer::Tensor& tensor) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(tensor.cols()));
  std::vector<std::uint16_t> scales(importer::scales_a_row(tensor));
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    if (!importer::decode_ternary_row(tensor, row, codes.data(), scales.data())) return true;
  }
  return false;
}

// Whether the halves of some group of 128 have scales of their own.
bool has_half_groups(const importer::Tensor& tensor) {
  if (importer::scale_group(tensor) == format::kGroup ||
      importer::scale_kind(tensor) != format::ScaleKind::per_group) {
    return false;
  }
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(tensor.cols()));
  std::vector<std::uint16_t> scales(importer::scales_a_row(tensor));
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    importer::decode_ternary_row(tensor, row, codes.data(), scales.data());
    for (std::size_t i = 1; i < scales.size(); i += 2) {
      if (scales[i] != scales[i - 1]) return true;
    }
  }
  return false;
}

// Whether each quad of a unit holds exactly one 0 and no code 3.
bool has_one_zero_a_quad(const std::vector<std::uint8_t>& codes, std::uint32_t unit) {
  for (std::size_t first = 0; first < codes.size(); first += format::kGroup) {
    for (std::size_t q = 0; q < format::kGroup / 4; ++q) {
      if (first + format::s34_input(unit, q, 0) >= codes.size()) continue;  // half a group
      int zeros = 0;
      for (std::size_t p = 0; p < 4; ++p) {
        const std::uint8_t code = codes[first + format::s34_input(unit, q, p)];
        if (code == 3) return false;
        zeros += code == 1 ? 1 : 0;
      }
      if (zeros != 1) return false;
    }
  }
  return true;
}

// The unit of s34 that holds the tensor, if one does. A tensor that is not of this kind shows it in
// its first row.
std::optional<std::uint32_t> s34_unit(const importer::Tensor& tensor) {
  if (tensor.type == SourceType::stq1_0) return format::kFlagStride16;
  if (tensor.type == SourceType::stq1_0_consecutive) return 0;
  if (tensor.type == SourceType::s34) return tensor.flags;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(tensor.cols()));
  std::vector<std::uint16_t> scales(importer::scales_a_row(tensor));
  bool consecutive = codes.size() % 4 == 0, strided = codes.size() % 64 == 0;
  for (std::uint64_t row = 0; row < tensor.rows() && (consecutive || strided); ++row) {
    read_codes(tensor, row, codes.data(), scales.data());
    consecutive = consecutive && has_one_zero_a_quad(codes, 0);
    strided = strided && has_one_zero_a_quad(codes, format::kFlagStride16);
  }
  if (consecutive) return 0;
  if (strided) return format::kFlagStride16;
  return std::nullopt;
}

Choice choose_codes(const importer::Tensor& tensor, TernaryEncoding ternary, format::ScaleKind kind,
                    Fate fate) {
  if (ternary == TernaryEncoding::t2) return {Encoding::t2, fate, 0, kind};
  const auto unit = ternary == TernaryEncoding::automatic ? s34_unit(tensor) : std::nullopt;
  if (unit) return {Encoding::s34, fate, *unit, kind};
  return {Encoding::t1, fate, 0, kind};
}

Choice choose_ternary(const importer::Tensor& tensor, TernaryEncoding ternary,
                      DenseEncoding dense) {
  if (tensor.n_dims == 1) return {Encoding::f32, Fate::widened};
  const bool t1 = ternary == TernaryEncoding::t1, halves = has_half_groups(tensor);
  if (dense == DenseEncoding::q4) {
    const bool plus_2 = importer::can_hold_plus_2(tensor.type) && holds_code_3(tensor);
    if (plus_2 || (halves && t1)) return {Encoding::q4, Fate::as_q4};
  }
  const format::ScaleKind kind = importer::scale_kind(tensor);
  if (halves && !t1) return {Encoding::t2, Fate::kept, format::kFlagHalfGroups, kind};
  return choose_codes(tensor, ternary, kind, Fate::kept);
}

}  // namespace

std::optional<Encoding> own_encoding(importer::SourceType type) {
  switch (type) {
    case importer::SourceType::f32:
      return Encoding::f32;
    case importer::SourceType::f16:
      return Encoding::f16;
    case importer::SourceType::bf16:
      return Encoding::bf16;
    case importer::SourceType::q8_0:
      return Encoding::q8;
    case importer::SourceType::q4_0:
    case importer::SourceType::q4_1:
      return Encoding::q4;
    default:
      return std::nullopt;
  }
}

Choice choose(const importer::Tensor& tensor, TernaryEncoding ternary, DenseEncoding dense) {
  if (importer::is_ternary(tensor.type)) return choose_ternary(tensor, ternary, dense);
  const TernaryValues values =
      is_convolution(tensor) ? TernaryValues::none : find_ternary_values(tensor);
  if (values == TernaryValues::found) {
    return choose_codes(tensor, ternary, format::ScaleKind::per_group, Fate::recognised);
  }
  Choice choice = choose_dense(tensor, dense);
  choice.beyond_f16 = values == TernaryValues::beyond_f16;
  return choice;
}

}  // namespace tsq::convert
