// From a .tsq file to a Model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "tsq/error.h"
#include "tsq/export.h"
#include "tsq/model.h"

namespace tsq {

// Weights in a form that is faster on this CPU than the file's, made in memory at load. The file
// stays mapped beside them. Results do not change by a bit.
enum class Repack : std::uint8_t {
  none,       // as they lie in the file
  automatic,  // what decodes fastest here, for as many weights as half of the free memory holds
  t2,         // t1 as t2: a quarter larger, with less to compute
};

// What a Loader does with one weight.
class TensorOptions {
 public:
  explicit TensorOptions(Repack repack) : repack_(repack) {}
  void set_repack(Repack repack) { repack_ = repack; }
  Repack repack() const { return repack_; }

 private:
  Repack repack_;
};

// Bytes made of all, called now and then by the thread that loads; false cancels.
using RepackProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

struct LoaderOptions {
  std::optional<int> hadamard_order;
  Repack repack = Repack::none;
  std::function<void(std::string_view name, TensorOptions& options)> on_layer_loaded;
  RepackProgress on_repack;
  int threads = 0;
};

// Opens model files. Every option has a working default; a Loader may be used many times.
class TSQ_API Loader {
 public:
  // The main rotation's block is 2^order (4 to 14), instead of what the file says. The file's
  // rotation probes have to agree: a wrong order is refused, as is any for a model that is not
  // rotated.
  Loader& with_hadamard_order(int order);

  // How the weights that the model multiplies by are repacked.
  Loader& with_repack(Repack repack);
  // Called for each such weight as it is found, by its name in the file, with what with_repack()
  // said: the callback may decide otherwise.
  Loader& on_layer_loaded(std::function<void(std::string_view name, TensorOptions& options)> hook);
  Loader& on_repack(RepackProgress progress);
  // Threads that repack; 0: physical cores within affinity and cgroup quota.
  Loader& with_threads(int threads);

  // Maps the file and checks it: structure, digests of the small sections, rotation probes, and
  // that the architecture's graph finds every weight it needs. Weights are mapped, not copied
  // unless they are to be repacked; the few that the probes name are read.
  // Truncating the file while the model lives ends the process at the next read.
  // Errors: not_found, io, damaged (where, found, expected), unsupported (what is missing),
  // invalid_argument (an option that the file contradicts), out_of_memory (with how much more
  // repacking needs), cancelled.
  Result<Model> load(const std::filesystem::path& path) const;

 private:
  LoaderOptions options_;
};

}  // namespace tsq
