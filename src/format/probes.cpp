#include "format/probes.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>

#include "base/errorf.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

// The sum of FORMAT.md's section 7 and the sum of its terms' magnitudes.
struct Unrotated {
  double value = 0, magnitude = 0;
};

Unrotated unrotate(std::span<const float> stored_row, const Rotation& rotation, std::uint64_t col) {
  const std::uint64_t start = col / rotation.block * rotation.block;
  Unrotated sum;
  for (std::uint64_t i = 0; i < rotation.block; ++i) {
    const double z = static_cast<double>(stored_row[start + i]);
    const bool negative = std::popcount(i & (col - start)) % 2 != 0;
    sum.value += negative ? -z : z;
    sum.magnitude += std::abs(z);
  }
  const double norm = std::sqrt(static_cast<double>(rotation.block));
  const bool flipped = !rotation.signs.empty() && (rotation.signs[col / 32] >> col % 32 & 1) != 0;
  return {(flipped ? -sum.value : sum.value) / norm, sum.magnitude / norm};
}

}  // namespace

double unrotated_weight(std::span<const float> stored_row, const Rotation& rotation,
                        std::uint64_t col) {
  return unrotate(stored_row, rotation, col).value;
}

std::optional<double> find_mismatch(const File& file, const RotationProbe& probe) {
  const TensorRecord& tensor = file.tensors()[probe.tensor];
  std::vector<float> row(static_cast<std::size_t>(tensor.cols()));
  decode_row(tensor.shape(), file.body(tensor), probe.row, row.data());
  const Unrotated found = unrotate(row, file.rotations()[probe.rotation], probe.col);
  // Not a number is a mismatch too.
  if (std::abs(found.value - probe.value) <= 0x1p-30 * found.magnitude) return std::nullopt;
  return found.value;
}

Result<void> check_rotation_probes(const File& file) {
  for (const RotationProbe& probe : file.rotation_probes()) {
    const auto mismatch = find_mismatch(file, probe);
    if (!mismatch) continue;
    return damaged(
        "rotation %u, tensor '%s', row %llu, col %llu: un-rotated weight is %.9g, the "
        "probe says %.9g",
        probe.rotation, printable(file.tensors()[probe.tensor].name).c_str(),
        static_cast<unsigned long long>(probe.row), static_cast<unsigned long long>(probe.col),
        *mismatch, probe.value);
  }
  return {};
}

}  // namespace tsq::format
