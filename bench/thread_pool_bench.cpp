// What a fork and join costs, and what is lost where the work is uneven. Times are on the clock of
// the caller; each iteration is one parallel_for.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace {

using tsq::ThreadPool;
using Clock = std::chrono::steady_clock;

constexpr int kForks = 2000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void busy(double seconds) {
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
  }
}

// Times every fork on its own: the median and the slowest hundredth, in microseconds. `gap` seconds
// pass between two forks.
template <class Task>
void time_forks(benchmark::State& state, ThreadPool& pool, double gap, Task&& task) {
  std::vector<double> micros;
  for (auto _ : state) {
    for (int i = 0; i < kForks; ++i) {
      busy(gap);
      const auto start = Clock::now();
      task(pool);
      micros.push_back(1e6 * seconds_since(start));
    }
  }
  state.SetItemsProcessed(state.iterations() * kForks);
  std::sort(micros.begin(), micros.end());
  state.counters["median_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
  state.counters["worst_us"] = micros.back();
}

void empty_task(benchmark::State& state, double gap) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const auto count = static_cast<std::size_t>(state.range(0));
  time_forks(state, pool, gap,
             [&](ThreadPool& p) { p.parallel_for(count, 1, [](std::size_t, std::size_t) {}); });
}

// Every thread has to take part: a piece ends when all have begun.
void all_meet(benchmark::State& state, double gap) {
  const auto threads = static_cast<std::uint32_t>(state.range(0));
  if (static_cast<int>(threads) > tsq::usable_threads()) return state.SkipWithError("no core each");
  ThreadPool pool(static_cast<int>(threads));
  time_forks(state, pool, gap, [&](ThreadPool& p) {
    std::atomic<std::uint32_t> begun{0};
    p.parallel_for(threads, 1, [&](std::size_t, std::size_t) {
      begun.fetch_add(1);
      for (int i = 0; begun.load() < threads; ++i) {
        if (i > 1000) std::this_thread::yield();
      }
    });
  });
}

// 1000 pieces of a microsecond, the last of each hundred of 20: `efficiency` is the work over what
// the threads could have done meanwhile.
void uneven(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr std::size_t kCount = 1000;
  const auto micros = [](std::size_t i) { return i % 100 == 99 ? 20.0 : 1.0; };
  double work = 0;
  for (std::size_t i = 0; i < kCount; ++i) work += 1e-6 * micros(i);
  std::vector<double> shares;
  for (auto _ : state) {
    const auto start = Clock::now();
    pool.parallel_for(kCount, 1, [&](std::size_t first, std::size_t last) {
      double sum = 0;
      for (std::size_t i = first; i < last; ++i) sum += micros(i);
      busy(1e-6 * sum);
    });
    const int cores = std::min(pool.threads(), tsq::usable_threads());
    shares.push_back(work / seconds_since(start) / cores);
  }
  std::sort(shares.begin(), shares.end());
  state.counters["efficiency"] = shares[shares.size() / 2];
}

}  // namespace

BENCHMARK_CAPTURE(empty_task, at_once, 0.0)->Arg(1)->Arg(2)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(empty_task, after_50_us, 50e-6)->Arg(2)->Arg(8)->UseRealTime();
BENCHMARK_CAPTURE(all_meet, at_once, 0.0)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(all_meet, after_5_us, 5e-6)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(all_meet, after_50_us, 50e-6)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(all_meet, after_500_us, 500e-6)->Arg(2)->Iterations(1)->UseRealTime();
BENCHMARK(uneven)->Arg(1)->Arg(2)->Arg(8)->UseRealTime();

BENCHMARK_MAIN();
