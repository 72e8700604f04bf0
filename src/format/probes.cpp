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

// values: the stored row's inputs of the block that col lies in.
Unrotated unrotate(std::span<const float> values, const Rotation& rotation, std::uint64_t col) {
  Unrotated sum;
  for (std::uint64_t i = 0; i < rotation.block; ++i) {
    const double z = static_cast<double>(values[i]);
    const bool negative = std::popcount(i & col % rotation.block) % 2 != 0;
    sum.value += negative ? -z : z;
    sum.magnitude += std::abs(z);
  }
  const double norm = std::sqrt(static_cast<double>(rotation.block));
  const bool flipped = !rotation.signs.empty() && (rotation.signs[col / 32] >> col % 32 & 1) != 0;
  return {(flipped ? -sum.value : sum.value) / norm, sum.magnitude / norm};
}

std::uint64_t block_start(const Rotation& rotation, std::uint64_t col) {
  return col / rotation.block * rotation.block;
}

}  // namespace

double unrotated_weight(std::span<const float> stored_row, const Rotation& rotation,
                        std::uint64_t col) {
  const auto values = stored_row.subspan(block_start(rotation, col), rotation.block);
  return unrotate(values, rotation, col).value;
}

std::optional<double> find_mismatch(const File& file, const RotationProbe& probe) {
  const TensorRecord& tensor = file.tensors()[probe.tensor];
  const Rotation& rotation = file.rotations()[probe.rotation];
  std::vector<float> values(rotation.block);
  decode_row_part(tensor.shape(), file.bytes(tensor), probe.row, block_start(rotation, probe.col),
                  values);
  const Unrotated found = unrotate(values, rotation, probe.col);
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
