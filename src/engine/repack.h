// Weights in the forms of kernels/repack.h, made when a model is opened.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "backend/weight.h"
#include "base/anonymous_memory.h"
#include "kernels/kernels.h"
#include "tsq/loader.h"

namespace tsq {

class RepackedWeights {
 public:
  // Notes that a weight is wanted so; which form that is depends on the level of the kernels.
  void add(Weight& weight, Repack repack, const kernels::Kernels& kernels);

  // Makes what was noted. `available`: bytes of memory that can be had; nothing where that is not
  // known, and everything fits. A tenth of them is left for everybody else; what is automatic takes
  // half at most, in the order of add(). Errors: out_of_memory, cancelled (progress said no).
  Result<void> make(std::optional<std::uint64_t> available, int threads,
                    const RepackProgress& progress);

  const RepackTotals& totals() const { return totals_; }

 private:
  struct Entry {
    PackedBody body;
    kernels::TernaryMatrix from;
    bool automatic;
    std::uint64_t bytes, file_bytes;
  };
  Result<void> choose(std::optional<std::uint64_t> available);

  std::deque<Entry> entries_;  // weights point to their bodies
  AnonymousMemory memory_;
  RepackTotals totals_;
};

}  // namespace tsq
