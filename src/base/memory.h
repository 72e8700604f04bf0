// Memory that this process may still take.
#pragma once

#include <cstdint>

namespace tsq {

// Bytes that can be had without swapping: what the system has available, or what the cgroup's
// limit leaves if that is less. Zero where the system does not say.
std::uint64_t available_memory();

}  // namespace tsq
