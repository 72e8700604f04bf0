// From a .tsq file to a Model.
#pragma once

#include <filesystem>
#include <optional>

#include "tsq/error.h"
#include "tsq/export.h"
#include "tsq/model.h"

namespace tsq {

// Opens model files. Every option has a working default; a Loader may be used many times.
class TSQ_API Loader {
 public:
  // The main rotation's block is 2^order (4 to 14), instead of what the file says. The file's
  // rotation probes have to agree: a wrong order is refused, as is any for a model that is not
  // rotated.
  Loader& with_hadamard_order(int order);

  // Maps the file and checks it: structure, digests of the small sections, rotation probes, and
  // that the architecture's graph finds every weight it needs. Weights are mapped, not copied; the
  // few that the probes name are read.
  // Truncating the file while the model lives ends the process at the next read.
  // Errors: not_found, io, damaged (where, found, expected), unsupported (what is missing),
  // invalid_argument (an option that the file contradicts), out_of_memory.
  Result<Model> load(const std::filesystem::path& path) const;

 private:
  std::optional<int> hadamard_order_;
};

}  // namespace tsq
