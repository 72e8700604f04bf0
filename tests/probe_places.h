// Where the files that tests make have their rotation probes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/file.h"

namespace tsq::test {

// 16 for each rotation from 0 on, spread over the tensors that it rules, their rows and columns.
// The values are left 0.
inline std::vector<format::RotationProbe> probe_places(
    std::span<const format::TensorRecord> tensors, std::uint32_t n_rotations) {
  std::vector<format::RotationProbe> probes;
  for (std::uint32_t rotation = 0; rotation < n_rotations; ++rotation) {
    std::vector<std::uint32_t> rotated;
    for (std::uint32_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].input_rotation == rotation) rotated.push_back(i);
    for (std::uint64_t k = 0; k < 16; ++k) {
      const std::uint32_t tensor = rotated[k * (rotated.size() - 1) / 15];
      probes.push_back({.rotation = rotation,
                        .tensor = tensor,
                        .row = k * (tensors[tensor].rows() - 1) / 15,
                        .col = k * (tensors[tensor].cols() - 1) / 15});
    }
  }
  return probes;
}

}  // namespace tsq::test
