// Speeds as a share of a limit that is measured before, between and after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace tsq::bench {

// CPU time leaves out the turns of other processes, the time on the wall does not.
enum class Clock : std::uint8_t { cpu, wall };

// Runs f(thread) on `threads` threads; the seconds of the slowest, each counted from where it
// begins. f must not throw.
double slowest_seconds(int threads, Clock clock, FunctionRef<void(int)> f);

double median(std::vector<double> values);  // not empty

// A limit that is measured in several ways, as no one of them is the fastest everywhere. The speeds
// whose share is asked for were measured in turn with it: speeds[i] between its measurements i and
// i + 1, to whose mean it is compared.
class Ceiling {
 public:
  explicit Ceiling(std::size_t ways) : measured_(ways) {}

  // One measurement: the speed of every way.
  void add(std::span<const double> ways);

  // The median of the fastest way.
  double speed() const;
  struct Share {
    double median, best;
  };
  // Under the way that is, by the median, the hardest to keep up with. A round is `pieces` speeds
  // in a row, of equal work; what it reached in all is compared to the mean of what is around each.
  Share share(std::span<const double> speeds, std::size_t pieces = 1) const;
  // From the slowest measurement to the fastest, as a share of the fastest; of each measurement the
  // fastest way counts.
  double moved() const;

 private:
  std::vector<std::vector<double>> measured_;  // of each way
};

}  // namespace tsq::bench
