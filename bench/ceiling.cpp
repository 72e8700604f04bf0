#include "bench/ceiling.h"

#include <time.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <thread>

namespace tsq::bench {
namespace {

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double slowest_seconds(int threads, Clock clock, FunctionRef<void(int)> f) {
  std::vector<double> used(static_cast<std::size_t>(threads));
  const auto timed = [&](int t) {
    const double start = now(clock);
    f(t);
    used[static_cast<std::size_t>(t)] = now(clock) - start;
  };
  std::vector<std::jthread> others;  // joined, too, where one cannot be started
  for (int t = 1; t < threads; ++t) others.emplace_back(timed, t);
  timed(0);
  for (std::jthread& t : others) t.join();
  return *std::max_element(used.begin(), used.end());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

void Ceiling::add(std::span<const double> ways) {
  assert(ways.size() == measured_.size());
  for (std::size_t way = 0; way < ways.size(); ++way) measured_[way].push_back(ways[way]);
}

double Ceiling::speed() const {
  double fastest = 0;
  for (const auto& way : measured_) fastest = std::max(fastest, median(way));
  return fastest;
}

Ceiling::Share Ceiling::share(std::span<const double> speeds, std::size_t pieces) const {
  Share least{std::numeric_limits<double>::infinity(), 0};
  for (const auto& way : measured_) {
    std::vector<double> ratios;
    for (std::size_t first = 0; first + pieces <= speeds.size(); first += pieces) {
      double time = 0, limits = 0;
      for (std::size_t i = first; i < first + pieces; ++i) {
        time += 1 / speeds[i];
        limits += (way[i] + way[i + 1]) / 2;
      }
      const auto n = static_cast<double>(pieces);
      ratios.push_back(n / time / (limits / n));
    }
    const double best = *std::max_element(ratios.begin(), ratios.end());
    if (const double middle = median(std::move(ratios)); middle < least.median)
      least = {middle, best};
  }
  return least;
}

double Ceiling::moved() const {
  double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
  for (std::size_t i = 0; i < measured_.front().size(); ++i) {
    double speed = 0;
    for (const auto& way : measured_) speed = std::max(speed, way[i]);
    slowest = std::min(slowest, speed);
    fastest = std::max(fastest, speed);
  }
  return 1 - slowest / fastest;
}

}  // namespace tsq::bench
