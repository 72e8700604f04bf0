// The rotation probes of a file, made and checked from the definition of the rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/reader.h"

namespace tsq::format {

// The value W[row][col] before rotation, W = W' H diag(s) on the input side: W'[row] dotted with
// column col of H, times s[col], in double, H from its definition (-1)^popcount(i & j) / sqrt(B).
double unrotated_weight(std::span<const float> stored_row, const Rotation& rotation,
                        std::uint64_t col);

// The value that the file's tensor and rotation record give at a probe's place, if it differs from
// the probe's by more than rounding; nothing if they agree.
std::optional<double> find_mismatch(const File& file, const RotationProbe& probe);

// Compares every probe. An error (damaged) names the tensor, the place, both values.
Result<void> check_rotation_probes(const File& file);

}  // namespace tsq::format
