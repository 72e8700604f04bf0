// Type ids that several programs use for different types (42), or whose tensors are no whole number
// of blocks (I2_S): the room that the tensors take in the file says what they are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/checkpoint.h"

namespace tsq::importer {

inline constexpr std::uint32_t kSizedTypes[] = {36, 42, 43};

// A tensor of such an id.
struct SizedTensor {
  std::string_view name;
  std::uint64_t weights, cols;
  std::uint64_t room;  // bytes up to the next tensor, or to the end of the file
};

// The one type that all tensors of this id in a file are, decided by the largest. An error where no
// type fits, and where two do. tensors: not empty.
Result<SourceType> type_of_size(std::uint32_t id, std::span<const SizedTensor> tensors,
                                std::uint64_t alignment, const AssumedLayouts& assumed);

// Bytes of a tensor of any type: those of its rows, and for I2_S 32 more behind them, which
// start with the f32 scale.
std::uint64_t stored_bytes(SourceType type, std::uint64_t weights);

}  // namespace tsq::importer
