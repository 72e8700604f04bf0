// Every check of FORMAT.md that opening a file leaves out, because it reads the data section and
// what lies behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/reader.h"
#include "tsq/error.h"

namespace tsq::format {

// One failed check: of each tensor and kind the first place, and how many there are.
struct Finding {
  std::string where, found, expected;
};

struct VerifyReport {
  std::vector<Finding> findings;  // empty: the file is sound
  std::uint64_t checked_bytes = 0;
};

// Bytes of the data and optional sections checked so far, and all of them. False cancels.
using VerifyProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Tensor digests, codes, zero counts, scales and dense values, padding, the bytes between tensors,
// the rotation probes; digests and padding of the optional sections. The token probe's state is
// checked here too, its replay is the engine's.
// Errors: cancelled.
Result<VerifyReport> verify(const File& file, const VerifyProgress& progress = {});

}  // namespace tsq::format
