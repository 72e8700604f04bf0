// The symbols of a piece form a linked list, at first one a byte or character; a heap holds the
// merges that two neighbours could make. A merge changes the list and leaves stale candidates in
// the heap. They are known by asking for a result that the pair at their position no longer has:
// what starts at one position only ever grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/tokenizer_section.h"

namespace tsq {

class MergeList {
 public:
  static constexpr std::uint32_t kEnd = 0xffffffff;  // no neighbour on this side

  // What two neighbours make. The lowest order is merged first, the leftmost of equals.
  struct Pair {
    std::uint32_t order, result;
  };

  void clear() { symbols_.clear(); }
  // At most kEnd of them. A symbol that is no token is kNoToken.
  void push_back(std::uint32_t token) {
    const auto i = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({token, format::kNoToken, i - 1, i + 1});  // i - 1 is kEnd at 0
  }

  // Merges until no pair is left. lookup(left, right), positions of neighbours, gives an optional
  // Pair. Time n log n.
  template <class Lookup>
  void merge(Lookup lookup);

  // What is left, from 0 to kEnd; requires that there is something.
  std::uint32_t token(std::uint32_t position) const { return symbols_[position].token; }
  std::uint32_t next(std::uint32_t position) const { return symbols_[position].next; }
  bool empty() const { return symbols_.empty(); }

 private:
  struct Symbol {
    std::uint32_t token;
    std::uint32_t pair;  // what it and the next one merge to; kNoToken: nothing, or it is gone
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint64_t order;  // the pair's, then position
    std::uint32_t pair;
    bool operator>(const Candidate& other) const { return order > other.order; }
  };

  // Looks up the pair that starts at position and, if it merges, puts it behind the heap.
  template <class Lookup>
  bool add_candidate(std::uint32_t position, Lookup& lookup) {
    Symbol& symbol = symbols_[position];
    symbol.pair = format::kNoToken;
    if (symbol.next == kEnd) return false;
    const std::optional<Pair> merged = lookup(position, symbol.next);
    if (!merged) return false;
    symbol.pair = merged->result;
    heap_.push_back({std::uint64_t{merged->order} << 32 | position, merged->result});
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

template <class Lookup>
void MergeList::merge(Lookup lookup) {
  heap_.clear();
  const auto n = static_cast<std::uint32_t>(symbols_.size());
  if (n != 0) symbols_.back().next = kEnd;
  for (std::uint32_t i = 0; i < n; ++i) add_candidate(i, lookup);
  std::ranges::make_heap(heap_, std::greater{});

  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::ranges::pop_heap(heap_, std::greater{});
    heap_.pop_back();
    const auto position = static_cast<std::uint32_t>(best.order);
    Symbol& left = symbols_[position];
    if (left.pair != best.pair) continue;
    Symbol& right = symbols_[left.next];
    right.pair = format::kNoToken;
    left.token = best.pair;
    left.next = right.next;
    if (left.next != kEnd) symbols_[left.next].previous = position;
    for (const std::uint32_t changed : {left.previous, position}) {
      if (changed == kEnd) continue;
      if (add_candidate(changed, lookup)) std::ranges::push_heap(heap_, std::greater{});
    }
  }
}

}  // namespace tsq
