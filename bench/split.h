// Threads of the benches: how many, and which rows of a matrix are whose.
#pragma once

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace tsq::bench {

// 1, 2, 4 ... and as many as make sense here.
inline std::vector<int> thread_counts() {
  const int most = usable_threads();
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

// Evenly and beforehand, in whole row blocks: what a thread pool adds is not in question here.
inline kernels::RowRange rows_of(std::size_t rows, int thread, int threads) {
  const std::size_t blocks = (rows + kernels::kRowBlock - 1) / kernels::kRowBlock;
  const auto at = [&](int t) {
    const auto block = blocks * static_cast<std::size_t>(t) / static_cast<std::size_t>(threads);
    return std::min(block * kernels::kRowBlock, rows);
  };
  return {at(thread), at(thread + 1)};
}

}  // namespace tsq::bench
