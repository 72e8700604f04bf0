// The rotation probes of a file, made and checked from the definition of the rotation.
#pragma once

#include <vector>

#include "format/reader.h"

namespace tsq::format {

// The value W[row][col] before rotation, W = W' H diag(s) on the input side: W'[row] dotted with
// column col of H, times s[col], in double, H from its definition (-1)^popcount(i & j) / sqrt(B).
double unrotated_weight(std::span<const float> stored_row, const Rotation& rotation,
                        std::uint64_t col);

// Compares every probe with the file's tensors and rotation records. An error (damaged) names the
// tensor, the place, both values.
Result<void> check_rotation_probes(const File& file);

}  // namespace tsq::format
