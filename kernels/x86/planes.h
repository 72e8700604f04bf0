// One chunk of 2-bit codes times one column. A level's dot.h comes before.
//
// Trick: of the four planes of a byte those that the level's sums can tell apart are masked where
// they lie, not shifted down: a sum then holds its planes' dots times 1, 4, 16 or 64, exactly.
// 512-bit registers are many: four sums. 256-bit: two, and one shift for planes 2 and 3.
// Overflow: a 16-bit 4-fold sum gets 16 pairs of at most 2 * 8 * 127 a group, 32512 < 2^15, with no
// room left: the start goes to the other one. In int32 the 64-fold plane is at most 520192 a group.
#pragma once

#include "kernels/x86/scales.h"

namespace tsq::kernels {
namespace {

// A vector's sums of a group or half group.
struct PlaneSums {
  Ints of[kPlaneSums];
};

template <int T>
inline void start_sums(std::int32_t start, PlaneSums (&sums)[T]) {
  for (PlaneSums& sum : sums) {
    sum.of[0] = set_ints(Dot::start_bits(start));
    for (int p = 1; p < kPlaneSums; ++p) sum.of[p] = Dot::zero();
  }
}

// sums[c][t] += codes[t] x for N columns, `stride` apart, and T vectors; x: the first column's 16
// activations of the chunk, four for each plane.
template <int N, int T>
inline void add_chunk(PlaneSums (&sums)[N][T], Ints (&codes)[T], const std::int8_t* x,
                      std::size_t stride) {
  for (int p = 0; p < 4; ++p) {
    if (p == kPlaneSums) {
      for (int t = 0; t < T; ++t) codes[t] = shift_right_shorts<2 * kPlaneSums % 8>(codes[t]);
    }
    const int plane = p % kPlaneSums;
    Ints xs[N];
    for (int c = 0; c < N; ++c) xs[c] = broadcast4(x + c * stride + 4 * p);
    for (int t = 0; t < T; ++t) {
      const Ints masked = bits_and(codes[t], set_bytes(3 << (2 * plane)));
      for (int c = 0; c < N; ++c) {
        sums[c][t].of[plane] = Dot::add(sums[c][t].of[plane], masked, xs[c]);
      }
    }
  }
}

}  // namespace
}  // namespace tsq::kernels
