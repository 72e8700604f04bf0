// A hash table of indices that leaves keys where they are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsq::importer {

// For up to n indices: four bytes a slot, where a map of the standard library takes 48.
class IndexTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit IndexTable(std::size_t n) : slots_(std::bit_ceil(2 * n), kNone) {}

  // The slot of the first index for which is_it() holds, else an empty one, which holds kNone.
  template <class IsIt>
  std::uint32_t& find(std::uint64_t hash, IsIt is_it) {
    std::size_t i = hash;
    while (slots_[i & (slots_.size() - 1)] != kNone && !is_it(slots_[i & (slots_.size() - 1)])) ++i;
    return slots_[i & (slots_.size() - 1)];
  }

 private:
  std::vector<std::uint32_t> slots_;
};

}  // namespace tsq::importer
