// t1 times one column where a level has a dot product in int32.
//
// Trick: no digit is ever extracted. A byte v_0 is a fixed-point fraction; with v_(k+1) = 3 v_k mod
// 256 digit k is (3 v_k - v_(k+1)) / 256, so over all bytes and digits
// sum(digit x) = (3 sum(v_k x_k) - sum(v_(k+1) x_k)) / 256, exactly: two byte additions and two
// dot products a digit. -sum(x) enters as 256 sum(x), the second sum's start value.
// Overflow: 3 * 128 * 255 * 127 = 12.4 million; vpdpbusd does not saturate.
// Order: one fma a group, ascending, or one int32 a row.
// Registers, of 16: sums 8, v 4, x 1, temporary 1; of 32: the same.
#pragma once

#include "kernels/x86/t1_layout.h"

namespace tsq::kernels {
namespace {

template <class P>
struct T1 : T1Body<P> {
  // The two sums of a lane.
  struct Sums {
    Ints now;   // of v_k x_k
    Ints next;  // of v_(k+1) x_k
  };
  static void step(Sums& sums, Ints& v, Ints x) {
    sums.now = Dot::add(sums.now, v, x);
    v = add_bytes(v, add_bytes(v, v));
    sums.next = Dot::add(sums.next, v, x);
  }

  template <int S, int kColumns>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    // Vectors of rows that pass together, enough of them to hide a dot product's latency.
    constexpr int kStreams = kVectors == 2 ? S : 1;
    constexpr int kTogether = kStreams * kVectors;
    const std::size_t groups = w.cols / kGroup;
    ColumnSums<P, S, 1> sums(w, blocks);
    const std::uint8_t* from[S];
    for (int s = 0; s < S; ++s) from[s] = T1Body<P>::row_block(w, blocks[s]);
    for (std::size_t first = 0; first < groups; first += kT1Super) {
      const std::size_t r = min_size(kT1Super, groups - first);
      Ints tails[S][2][kVectors];
      for (int s = 0; s < S; ++s) {
        for (int t = 0; t < 2; ++t) {
          const std::uint8_t* at = from[s] + r * P::kLineBytes + t * kPlane;
          prefetch_bytes<kPlane>(at);
          for (int v = 0; v < kVectors; ++v) {
            tails[s][t][v] = load(at + static_cast<std::size_t>(v) * kVectorBytes);
          }
        }
      }
      for (std::size_t i = 0; i < r; ++i) {
        const std::size_t g = first + i;
        const std::int8_t* q = x.q + g * kGroup;
        const Floats x_scale = set_floats(x.scale[g]);
        const std::size_t body = r * P::kLineBytes + kT1TailBytes + i * kT1Chunks * kPlane;
        for (int s = 0; s < S; s += kStreams) {
          Sums dots[kTogether];
          for (int t = 0; t < kTogether; ++t) {
            dots[t] = {Dot::zero(), set_ints(256 * x.sum[g])};
            for (int i_tail = 0; i_tail < 2; ++i_tail) {
              // What a step leaves of a tail are the digits of the groups to come.
              step(dots[t], tails[s + t / kVectors][i_tail][t % kVectors],
                   broadcast4(q + kT1BodyInputs + 4 * i_tail));
            }
          }
          std::size_t at = body;
#pragma GCC unroll 1
          for (std::size_t c = 0; c < kT1Chunks; ++c, at += kPlane) {
            Ints v[kTogether];
            for (int t = 0; t < kTogether; ++t) {
              const std::uint8_t* line = from[s + t / kVectors] + at +
                                         static_cast<std::size_t>(t % kVectors) * kVectorBytes;
              if (t * kVectorBytes % 64 == 0) prefetch(line);
              v[t] = load(line);
            }
            for (std::size_t d = 0; d < 5; ++d) {
              const Ints xs = broadcast4(q + 20 * c + 4 * d);
              for (int t = 0; t < kTogether; ++t) step(dots[t], v[t], xs);
            }
          }
          for (int t = 0; t < kTogether; ++t) {
            const std::uint8_t* line = from[s + t / kVectors] + i * P::kLineBytes;
            if (t % kVectors == 0) prefetch_bytes<P::kLineBytes>(line);
            const Ints three = add_ints(dots[t].now, add_ints(dots[t].now, dots[t].now));
            const Ints dot = shift_right_ints<8>(sub_ints(three, dots[t].next));
            sums.join(0, s + t / kVectors, t % kVectors, dot, line, x_scale);
          }
        }
      }
      for (int s = 0; s < S; ++s) from[s] += t1_super_bytes(r, P::kLines);
    }
    sums.store(w, blocks, x, y);
  }
};

}  // namespace
}  // namespace tsq::kernels
