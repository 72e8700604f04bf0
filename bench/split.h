// How the benches share out a matrix among threads.
#pragma once

#include <algorithm>

#include "kernels/kernels.h"

namespace tsq::bench {

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
