// A hash table of indices that leaves keys where they are.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsq::importer {

// For up to n indices: four bytes a slot, where a map of the standard library takes 48. Where an
// index goes differs from table to table, so that no file can be made of keys that crowd together.
class IndexTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit IndexTable(std::size_t n)
      : slots_(std::bit_ceil(2 * std::max<std::size_t>(n, 1)), kNone),
        shift_(64 - std::countr_zero(slots_.size())) {}

  // The slot of the first index for which is_it() holds, else an empty one, which holds kNone.
  template <class IsIt>
  std::uint32_t& find(std::uint64_t hash, IsIt is_it) {
    const std::size_t last = slots_.size() - 1;
    std::size_t i = (hash * odd_) >> shift_;
    while (slots_[i] != kNone && !is_it(slots_[i])) i = (i + 1) & last;
    return slots_[i];
  }

 private:
  std::vector<std::uint32_t> slots_;
  int shift_;
  // Multiplying by a random odd number and taking the high bits spreads any 64-bit keys
  // (Dietzfelbinger et al. 1997).
  std::uint64_t odd_ =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) *
          0x9E3779B97F4A7C15 |
      1;
};

}  // namespace tsq::importer
