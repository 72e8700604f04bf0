// Padding: bytes that have to be 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace tsq {

// Where the first byte that is not 0 lies.
inline std::optional<std::size_t> first_nonzero(std::span<const std::byte> bytes) {
  // All are equal to their neighbours: memcmp() is far faster than a loop over bytes.
  if (bytes.empty() || (bytes[0] == std::byte{0} &&
                        std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0))
    return std::nullopt;
  const auto found = std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{0}; });
  return static_cast<std::size_t>(found - bytes.begin());
}

}  // namespace tsq
