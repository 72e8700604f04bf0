// What the multipliers can do: the ceiling of everything that multiplies int8.
#pragma once

#include <optional>
#include <string_view>

#include "bench/ceiling.h"

namespace tsq::bench {

// How a CPU level multiplies bytes, codes by activations, and adds up.
enum class Int8Dot : std::uint8_t {
  maddubs,      // vpmaddubsw and vpaddw on 32 bytes
  avx_vnni,     // vpdpbusd on 32 bytes
  avx512_vnni,  // vpdpbusd on 64 bytes
};
// Of a level by its name in TSQ_ISA; scalar has none.
std::optional<Int8Dot> int8_dot(std::string_view level);

// In GOP/s, a multiplication and an addition being two: nothing but the instructions of the dot, on
// registers, in three arrangements. The CPU must have them.
class Int8Peak : public Ceiling {
 public:
  Int8Peak(Int8Dot dot, int threads, Clock clock)
      : Ceiling(kWays), dot_(dot), threads_(threads), clock_(clock) {}

  void measure();

 private:
  static constexpr std::size_t kWays = 3;
  Int8Dot dot_;
  int threads_;
  Clock clock_;
};

}  // namespace tsq::bench
