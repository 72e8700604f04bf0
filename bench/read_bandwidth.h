// What the memory can deliver: the ceiling of everything that streams weights.
#pragma once

#include <array>
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

// Nine ways to read memory front to back: 1, 2 or 4 streams at a time, without prefetch or 2 or 8
// KiB ahead. Each returns the exclusive or of the 32-byte words that it read.
inline constexpr std::size_t kReaders = 9;
using Word = std::array<std::uint64_t, 4>;
// bytes: at a multiple of 64; of a rest below 256 bytes nothing is read.
Word read_all(std::size_t reader, std::span<const std::byte> bytes);

// Reads between the rounds of something whose speed is in question, and what its speeds come to.
class ReadCeiling {
 public:
  ReadCeiling(int threads, Clock clock) : threads_(threads), clock_(clock) {}

  // Times every reader over these bytes, shared out among the threads; a few of them are read over
  // and over.
  void measure(std::span<const std::byte> bytes);

  // GB/s: the median of the fastest reader.
  double read_speed() const;
  // speeds[i], in GB/s, was measured between calls i and i + 1 of measure(). The median of speed to
  // reading, under the reader that is the hardest to keep up with.
  double share(std::span<const double> speeds) const;

 private:
  int threads_;
  Clock clock_;
  std::array<std::vector<double>, kReaders> speeds_;
};

double median(std::vector<double> values);  // not empty

}  // namespace tsq::bench
