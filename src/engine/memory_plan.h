// What a session will take, worked out before it takes it.
#pragma once

#include <cstdint>
#include <optional>

#include "tsq/session.h"

namespace tsq {

// Tokens of a prompt that are computed together. Results do not depend on it.
inline constexpr std::size_t kMaxBatch = 512;

// `available`: bytes of memory that can be had; nothing where that is not known, and everything
// fits. A tenth of them is left for everybody else. Errors: invalid_argument (a negative option, a
// context above the largest), out_of_memory (the largest context that would fit is named).
Result<MemoryPlan> plan_memory(const Model& model, const SessionOptions& options,
                               std::optional<std::uint64_t> available);

}  // namespace tsq
