// t1 times one column by its digits.
//
// Overflow: as a tile of tiles.h. Order: one fma a group, ascending, or one int32 a row.
// Registers, of 16: sum 1, digits 5, temporaries; tables and factors come from memory.
#pragma once

#include "kernels/x86/t1_layout.h"

namespace tsq::kernels {
namespace {

template <class P>
struct T1 : T1Body<P> {
  // The tail digits of a row block's super-block: [group][dword][vector].
  using Tails = Ints[kT1Super][2][kVectors];

  static void split_tails(const std::uint8_t* at, Tails& tails) {
    for (int t = 0; t < 2; ++t, at += kPlane) {
      prefetch_bytes<kPlane>(at);
      for (int v = 0; v < kVectors; ++v) {
        Ints digits[5];
        split(load(at + static_cast<std::size_t>(v) * kVectorBytes), digits);
        for (std::size_t d = 0; d < kT1Super; ++d) tails[d][t][v] = digits[d];
      }
    }
  }

  template <int S, int kColumns>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const std::size_t groups = w.cols / kGroup;
    ColumnSums<P, S, 1> sums(w, blocks);
    const std::uint8_t* from[S];
    for (int s = 0; s < S; ++s) from[s] = T1Body<P>::row_block(w, blocks[s]);
    Tails tails[S];
    for (std::size_t first = 0; first < groups; first += kT1Super) {
      const std::size_t r = min_size(kT1Super, groups - first);
      for (int s = 0; s < S; ++s) split_tails(from[s] + r * P::kLineBytes, tails[s]);
      for (std::size_t i = 0; i < r; ++i) {
        const std::size_t g = first + i;
        const std::int8_t* q = x.q + g * kGroup;
        const Ints start = set_ints(Dot::start_bits(-x.sum[g]));
        const Floats x_scale = set_floats(x.scale[g]);
        for (int s = 0; s < S; ++s) {
          Ints dot[kVectors];
          for (int v = 0; v < kVectors; ++v) {
            dot[v] = Dot::add(start, tails[s][i][0][v], broadcast4(q + kT1BodyInputs));
            dot[v] = Dot::add(dot[v], tails[s][i][1][v], broadcast4(q + kT1BodyInputs + 4));
          }
          const std::uint8_t* at =
              from[s] + r * P::kLineBytes + kT1TailBytes + i * kT1Chunks * kPlane;
          for (std::size_t c = 0; c < kT1Chunks; ++c, at += kPlane) {
            prefetch_bytes<kPlane>(at);
            for (int v = 0; v < kVectors; ++v) {
              Ints digits[5];
              split(load(at + static_cast<std::size_t>(v) * kVectorBytes), digits);
              for (std::size_t d = 0; d < 5; ++d) {
                dot[v] = Dot::add(dot[v], digits[d], broadcast4(q + 20 * c + 4 * d));
              }
            }
          }
          const std::uint8_t* line = from[s] + i * P::kLineBytes;
          prefetch_bytes<P::kLineBytes>(line);
          for (int v = 0; v < kVectors; ++v) {
            sums.join(0, s, v, Dot::total(dot[v]), line, x_scale);
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
