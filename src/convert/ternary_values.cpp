#include "convert/ternary_values.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/half.h"
#include "import/blocks.h"

namespace tsq::convert {
namespace {

constexpr std::uint64_t kMinimumCols = 32;

bool is_f16(float value) { return f16_to_f32(f32_to_f16(value)) == value; }

// The magnitude of the values that are not 0.
float scale_of(std::span<const float> group) {
  for (const float value : group) {
    if (value != 0) return std::abs(value);
  }
  return 0;
}

// What the groups seen so far hold.
struct Seen {
  bool ternary = true, plus = false, minus = false, beyond_f16 = false;

  void add(std::span<const float> group) {
    const float scale = scale_of(group);
    for (const float value : group) {
      plus |= value > 0;
      minus |= value < 0;
      ternary &= value == 0 || std::abs(value) == scale;  // false for what is not a number
    }
    ternary &= std::isfinite(scale);
    beyond_f16 |= !is_f16(scale);
  }
};

bool is_float(importer::SourceType type) {
  return type == importer::SourceType::f32 || type == importer::SourceType::f16 ||
         type == importer::SourceType::bf16;
}

// Calls visit with each group of a row.
template <class Visit>
void for_groups(std::span<const float> row, Visit visit) {
  for (std::size_t first = 0; first < row.size(); first += format::kGroup) {
    visit(row.subspan(first, std::min(format::kGroup, row.size() - first)));
  }
}

}  // namespace

TernaryValues find_ternary_values(const importer::Tensor& tensor) {
  if (!is_float(tensor.type) || tensor.n_dims < 2 || tensor.rows() < 2 ||
      tensor.cols() < kMinimumCols) {
    return TernaryValues::none;
  }
  std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
  Seen seen;
  for (std::uint64_t row = 0; row < tensor.rows(); ++row) {
    importer::decode_row(tensor, row, values.data());
    for_groups(values, [&](std::span<const float> group) { seen.add(group); });
    if (!seen.ternary) return TernaryValues::none;
  }
  if (!seen.plus || !seen.minus) return TernaryValues::none;
  return seen.beyond_f16 ? TernaryValues::beyond_f16 : TernaryValues::found;
}

bool read_codes(const importer::Tensor& tensor, std::uint64_t row, std::uint8_t* codes,
                std::uint16_t* scales) {
  if (importer::is_ternary(tensor.type)) {
    return importer::decode_ternary_row(tensor, row, codes, scales);
  }
  std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
  importer::decode_row(tensor, row, values.data());
  for_groups(values, [&](std::span<const float> group) {
    *scales++ = f32_to_f16(scale_of(group));
    for (const float value : group) {
      *codes++ = static_cast<std::uint8_t>(1 + (value > 0) - (value < 0));
    }
  });
  return true;
}

}  // namespace tsq::convert
