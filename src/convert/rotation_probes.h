// The rotation probes of a file that is being made.
#pragma once

#include <span>
#include <vector>

#include "convert/summary.h"
#include "format/file.h"
#include "import/checkpoint.h"

namespace tsq::convert {

// For each rotation some places in several of its tensors, at several rows and in several blocks of
// H; values 0.
std::vector<format::RotationProbe> rotation_probe_places(const importer::Checkpoint& checkpoint);

// Fills in the un-rotated weights, from the source's values: so they witness the packing too; of a
// narrowed tensor from what is stored.
void fill_rotation_probes(const importer::Checkpoint& checkpoint,
                          std::span<const format::TensorRecord> records,
                          std::span<const Fate> fates, std::vector<format::RotationProbe>& probes);

}  // namespace tsq::convert
