// t2 on the levels of x86: one row a 32-bit lane. A level's dot.h comes before.
//
// Layout: kernels/scalar/t2.cpp. One column: planes.h; several: tiles.h.
// Order: one fma a group or half group, ascending, or one int32 a row.
// Registers, of 16, two vectors by two columns: sums 8, codes 2, x 2, temporaries 2, masks from
// memory; of 32, four vectors: sums 16, codes 4, masks 4, x 1, temporary 1.
#pragma once

#include "kernels/x86/planes.h"
#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels {
namespace {

template <class P>
struct T2 {
  static constexpr bool kHalfGroups = true;
  static constexpr int kFewColumns = 8;  // that gemv takes
  static constexpr std::size_t kGroupBytes = t2_group_bytes(P::kLines);

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * t2_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel, std::size_t to) {
    const std::uint8_t* from = row_block(w, block) + first * kGroupBytes;
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      prefetch_bytes<kGroupBytes>(from);
      P::decode(w, block, from, panel.scales + (to + g) * P::kParts);
      for (std::size_t c = 0; c < kT2Chunks; ++c) {
        for (std::size_t at = 0; at < kPlane; at += kVectorBytes) {
          Ints codes = load(from + P::kLineBytes + c * kPlane + at);
          for (std::size_t p = 0; p < 4; ++p) {
            store_aligned(panel.codes[to + g][4 * c + p] + at, bits_and(codes, set_bytes(3)));
            codes = shift_right_shorts<2>(codes);
          }
        }
      }
    }
  }

  // kEach vectors of rows from `first` on of each of kTogether blocks from `stream` on, times
  // columns [column, column + N) of part `part` of group g.
  template <int kTogether, int kEach, int N, int S, class Sums>
  static void add_part(const std::uint8_t* const (&from)[S], std::size_t g, std::size_t part,
                       int stream, int first, std::size_t column, const Q8Matrix& x, Sums& sums) {
    constexpr int kVectorsTogether = kTogether * kEach;
    constexpr std::size_t kChunks = kT2Chunks / P::kParts;
    PlaneSums dots[N][kVectorsTogether];
    const std::size_t x_groups = x.cols / kGroup;
    const std::size_t x_group = column * x_groups + g;  // of the first column
    for (int c = 0; c < N; ++c) {
      start_sums(-part_sum<P::kParts>(x, x_group + c * x_groups, part), dots[c]);
    }
    const std::int8_t* q = x.q + x_group * kGroup + part * (kGroup / P::kParts);
    const std::uint8_t* at[kTogether];
    for (int s = 0; s < kTogether; ++s) {
      at[s] = from[stream + s] + P::kLineBytes + part * kChunks * kPlane +
              static_cast<std::size_t>(first) * kVectorBytes;
    }
#pragma GCC unroll 1
    for (std::size_t left = kChunks; left != 0; --left, q += 16) {
      if constexpr (N == 1 && kVectors == 4) in_register(left);
      Ints codes[kVectorsTogether];
      for (int s = 0; s < kTogether; ++s) {
        prefetch_bytes<kEach * kVectorBytes>(at[s]);
        for (int v = 0; v < kEach; ++v) {
          codes[s * kEach + v] = load(at[s] + static_cast<std::size_t>(v) * kVectorBytes);
        }
        at[s] += kPlane;
      }
      add_chunk(dots, codes, q, x.cols);
    }
    for (int s = 0; s < kTogether; ++s) {
      const std::uint8_t* line = from[stream + s] + part * kScaleLine;
      for (int v = 0; v < kEach; ++v) {
        for (int c = 0; c < N; ++c) {
          sums.join(static_cast<int>(column) + c, stream + s, first + v,
                    Dot::total(dots[c][s * kEach + v].of), line,
                    set_floats(x.scale[x_group + c * x_groups]));
        }
      }
    }
  }

  // Up to kColumns columns.
  template <int S, int kColumns>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    constexpr int kTogether = kVectors == 2 ? S : 1;  // blocks that one column passes together
    ColumnSums<P, S, kColumns> sums(w, blocks);
    const std::uint8_t* from[S];
    for (int s = 0; s < S; ++s) from[s] = row_block(w, blocks[s]);
    for (std::size_t i = 0; i < w.cols / kGroup * P::kParts; ++i) {
      const std::size_t g = i / P::kParts;
      const std::size_t part = i % P::kParts;
      std::size_t c = 0;
      if constexpr (kColumns > 1) {
        for (; c + 2 <= x.n; c += 2) {
          for (int t = 0; t < S * kVectors; t += 2) {
            add_part<1, 2, 2>(from, g, part, t / kVectors, t % kVectors, c, x, sums);
          }
        }
      }
      if (c < x.n) {
        for (int t = 0; t < S * kVectors; t += 2 * kTogether) {
          add_part<kTogether, 2, 1>(from, g, part, t / kVectors, t % kVectors, c, x, sums);
        }
      }
      if (P::kLines != 0) {
        for (int s = 0; s < S; ++s) prefetch(from[s] + part * kScaleLine);
      }
      if (part + 1 == P::kParts) {
        for (int s = 0; s < S; ++s) from[s] += kGroupBytes;
      }
    }
    sums.store(w, blocks, x, y);
  }
};

}  // namespace
}  // namespace tsq::kernels
