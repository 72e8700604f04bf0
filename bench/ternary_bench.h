// The kernels of ternary weights as a share of what the memory and the multipliers can do.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/weights.h"

namespace tsq::bench {

inline constexpr int kRounds = 9;

struct Case {
  Form form;
  const kernels::Kernels* kernels;
  Shape shape;
  std::size_t columns;  // of activations
  int threads;
};

// With at most this many columns every round goes over 1 GiB of distinct weights or more, and the
// memory is a limit. With more, a round takes one matrix of those, another one each time, in pieces
// with the ceilings between them.
inline constexpr std::size_t kMostStreamed = 8;

// Times kRounds rounds and, before, between and after them, what limits them: nine readers of the
// same pages (1, 2 and 4 streams; no prefetch, 2 and 8 KiB ahead) and the level's integer dot on
// registers, on as many threads. Counters: the medians of the rounds' speeds and, as of_..., of
// their ratios to the ceilings around them, with the best ratio beside. huge_pages is the share of
// the weights that lies on such, noisy is 1 where a ceiling moved by more than a tenth.
void measure(benchmark::State& state, const Case& c);

}  // namespace tsq::bench
