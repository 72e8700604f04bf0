// What the memory can deliver: the ceiling of everything that streams weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/ceiling.h"

namespace tsq::bench {

// Nine ways to read memory front to back: 1, 2 or 4 streams at a time, without prefetch or 2 or 8
// KiB ahead. Each returns the exclusive or of the 32-byte words that it read.
inline constexpr std::size_t kReaders = 9;
using Word = std::array<std::uint64_t, 4>;
// bytes: at a multiple of 64; of a rest below 256 bytes nothing is read.
Word read_all(std::size_t reader, std::span<const std::byte> bytes);

// In GB/s.
class ReadCeiling : public Ceiling {
 public:
  ReadCeiling(int threads, Clock clock) : Ceiling(kReaders), threads_(threads), clock_(clock) {}

  // Times every reader over these bytes, shared out among the threads; a few of them are read over
  // and over.
  void measure(std::span<const std::byte> bytes);

 private:
  int threads_;
  Clock clock_;
};

}  // namespace tsq::bench
