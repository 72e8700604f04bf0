// s34 on the levels of x86: one row a 32-bit lane. A level's dot.h and quads.h come before.
//
// Trick: a look-up of the nibbles gives the codes of all four lanes of a quad, two bits each, as in
// a byte of t2; where the sign is set they become 2 - code. So one column goes on as t2 does
// (planes.h), with the activations of a group in the order of chunk, lane, quad.
// Layout: kernels/scalar/s34.cpp. Overflow: planes.h.
// Order: one fma a group, ascending, or one int32 a row.
// Registers, of 16: sums 4, codes 2, x 1, temporaries 4; constants come from memory.
#pragma once

#include "kernels/x86/planes.h"
#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels {
namespace {

template <class P>
struct S34 {
  static constexpr bool kHalfGroups = false;
  static constexpr int kFewColumns = 1;  // that gemv takes
  static constexpr std::size_t kGroupBytes = s34_group_bytes(P::kLines);
  static constexpr std::size_t kSigns = P::kLineBytes + kS34NibbleBytes;

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * s34_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  // The codes of chunk c, vector v of the rows.
  static Ints codes(const std::uint8_t* group, std::size_t c, std::size_t v) {
    const std::uint8_t* signs = group + kSigns + c * kS34SignBytes + v * kVectorBytes / 8;
    const Ints pair = load(group + P::kLineBytes + c / 2 * kPlane + v * kVectorBytes);
    return quads_of(pair, c % 2 != 0, signs);
  }

  template <int i>
  static void decode_quad(bool stride16, std::size_t c, Ints quads, std::uint8_t (*dwords)[kPlane],
                          std::size_t at) {
    if (stride16) {  // lane i of the four quads
      store_aligned(dwords[16 * (c / 4) + 4 * i + c % 4] + at,
                    bits_and(shift_right_shorts<2 * i>(quads), set_bytes(3)));
    } else {  // the four lanes of quad i
      store_aligned(dwords[4 * c + i] + at, lanes_of_quad<i>(quads));
    }
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel, std::size_t to) {
    const std::uint8_t* from = row_block(w, block) + first * kGroupBytes;
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      prefetch_bytes<kGroupBytes>(from);
      P::decode(w, block, from, panel.scales + (to + g) * P::kParts);
      for (std::size_t v = 0; v < kVectors; ++v) {
        for (std::size_t c = 0; c < kS34Chunks; ++c) {
          const Ints quads = codes(from, c, v);
          decode_quad<0>(w.stride16, c, quads, panel.codes[to + g], v * kVectorBytes);
          decode_quad<1>(w.stride16, c, quads, panel.codes[to + g], v * kVectorBytes);
          decode_quad<2>(w.stride16, c, quads, panel.codes[to + g], v * kVectorBytes);
          decode_quad<3>(w.stride16, c, quads, panel.codes[to + g], v * kVectorBytes);
        }
      }
    }
  }

  // A group's activations, byte 16 c + 4 p + j that of quad j of chunk c with lane p.
  static void order(bool stride16, const std::int8_t* q, std::int8_t* to) {
    if (!stride16) return transpose_quads(q, to);
    for (std::size_t c = 0; c < kS34Chunks; ++c) {
      for (std::size_t p = 0; p < 4; ++p) {
        __builtin_memcpy(to + 16 * c + 4 * p, q + 64 * (c / 4) + 16 * p + 4 * (c % 4), 4);
      }
    }
  }

  template <int S, int kColumns>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    constexpr int kTogether = 2;  // vectors of rows
    ColumnSums<P, S, 1> sums(w, blocks);
    const std::uint8_t* from[S];
    for (int s = 0; s < S; ++s) from[s] = row_block(w, blocks[s]);
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      alignas(64) std::int8_t q[kGroup];
      order(w.stride16, x.q + g * kGroup, q);
      const Floats x_scale = set_floats(x.scale[g]);
      for (int s = 0; s < S; ++s) {
        prefetch_bytes<kGroupBytes>(from[s]);
        for (int v = 0; v < kVectors; v += kTogether) {
          PlaneSums dots[1][kTogether];
          start_sums(-x.sum[g], dots[0]);
          for (std::size_t c = 0; c < kS34Chunks; ++c) {
            const auto first = static_cast<std::size_t>(v);
            Ints both[kTogether] = {codes(from[s], c, first), codes(from[s], c, first + 1)};
            add_chunk(dots, both, q + 16 * c, 0);
          }
          for (int t = 0; t < kTogether; ++t) {
            sums.join(0, s, v + t, Dot::total(dots[0][t].of), from[s], x_scale);
          }
        }
        from[s] += kGroupBytes;
      }
    }
    sums.store(w, blocks, x, y);
  }
};

}  // namespace
}  // namespace tsq::kernels
