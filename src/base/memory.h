// Memory that this process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace tsq {

// Bytes that can be had without swapping: what the system has available, or what the control
// group's limit leaves if that is less. Nothing where neither is known.
std::optional<std::uint64_t> available_memory();

}  // namespace tsq
