#include "convert/rotation_probes.h"

#include <algorithm>

#include "convert/dense_row.h"
#include "format/probes.h"
#include "import/blocks.h"

namespace tsq::convert {
namespace {

constexpr std::size_t kTensors = 4;  // of each rotation
constexpr std::size_t kPlaces = 4;   // of each tensor

// Place k of kPlaces: rows spread over the tensor, columns over the blocks of H, and within each
// block at another position, which decides the signs that H gives to the sum.
format::RotationProbe place_in(const importer::Checkpoint& checkpoint, std::uint32_t index,
                               std::size_t k) {
  const importer::Tensor& tensor = checkpoint.tensors[index];
  const std::uint64_t block = checkpoint.rotations[tensor.rotation].block;
  const std::uint64_t n_blocks = tensor.cols() / block;
  const std::uint64_t row = k * (tensor.rows() - 1) / (kPlaces - 1);
  const std::uint64_t col =
      k * (n_blocks - 1) / (kPlaces - 1) * block + (k + 1) * block / (kPlaces + 1);
  return {tensor.rotation, index, row, col, 0.0};
}

// The values that the file holds: a probe is about these.
void decode_narrowed_row(const importer::Tensor& tensor, std::uint64_t row,
                         const format::TensorRecord& record, std::vector<float>& values) {
  format::Shape shape = record.shape();
  shape.rows = 1;
  std::vector<std::byte> body(
      static_cast<std::size_t>(format::dense_row_bytes(shape.encoding, shape.flags, shape.cols)));
  pack_dense_row(tensor, row, record, body);
  format::decode_row(shape, {body}, 0, values.data());
}

}  // namespace

std::vector<format::RotationProbe> rotation_probe_places(const importer::Checkpoint& checkpoint) {
  std::vector<format::RotationProbe> probes;
  for (std::uint32_t rotation = 0; rotation < checkpoint.rotations.size(); ++rotation) {
    std::vector<std::uint32_t> rotated;
    for (std::uint32_t i = 0; i < checkpoint.tensors.size(); ++i) {
      if (checkpoint.tensors[i].rotation == rotation) rotated.push_back(i);
    }
    const std::size_t n = std::min(kTensors, rotated.size());
    for (std::size_t t = 0; t < n; ++t) {
      const std::size_t spread = n == 1 ? 0 : t * (rotated.size() - 1) / (n - 1);
      for (std::size_t k = 0; k < kPlaces; ++k) {
        probes.push_back(place_in(checkpoint, rotated[spread], k));
      }
    }
  }
  return probes;
}

void fill_rotation_probes(const importer::Checkpoint& checkpoint,
                          std::span<const format::TensorRecord> records,
                          std::span<const Fate> fates, std::vector<format::RotationProbe>& probes) {
  for (format::RotationProbe& probe : probes) {
    const importer::Tensor& tensor = checkpoint.tensors[probe.tensor];
    std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
    if (fates[probe.tensor] == Fate::narrowed) {
      decode_narrowed_row(tensor, probe.row, records[probe.tensor], values);
    } else {
      importer::decode_row(tensor, probe.row, values.data());
    }
    probe.value = format::unrotated_weight(values, checkpoint.rotations[probe.rotation], probe.col);
  }
}

}  // namespace tsq::convert
