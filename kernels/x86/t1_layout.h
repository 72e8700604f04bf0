// t1 on the levels of x86: one row a 32-bit lane. A level's dot.h and digits.h come before.
//
// Layout: kernels/scalar/t1.cpp. Several columns: the digits (digits.h), then tiles.h. One column:
// t1_digits.h or t1_telescoped.h, whichever the level includes.
#pragma once

#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels {
namespace {

template <class P>
struct T1Body {
  static constexpr bool kHalfGroups = false;
  static constexpr int kFewColumns = 1;  // that gemv takes

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * t1_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel, std::size_t to) {
    const std::uint8_t* scales =
        row_block(w, block) + t1_super(w.cols / kGroup, first, P::kLines).offset;
    const std::uint8_t* tails = scales + groups * P::kLineBytes;
    const std::uint8_t* body = tails + kT1TailBytes;
    for (std::size_t g = 0; g < groups; ++g, scales += P::kLineBytes) {
      prefetch_bytes<P::kLineBytes>(scales);
      P::decode(w, block, scales, panel.scales + (to + g) * P::kParts);
      for (std::size_t c = 0; c < kT1Chunks; ++c, body += kPlane) {
        prefetch_bytes<kPlane>(body);
        for (std::size_t at = 0; at < kPlane; at += kVectorBytes) {
          Ints digits[5];
          split(load(body + at), digits);
          for (std::size_t d = 0; d < 5; ++d) {
            store_aligned(panel.codes[to + g][5 * c + d] + at, digits[d]);
          }
        }
      }
    }
    for (std::size_t t = 0; t < 2; ++t, tails += kPlane) {
      prefetch_bytes<kPlane>(tails);
      for (std::size_t at = 0; at < kPlane; at += kVectorBytes) {
        Ints digits[5];
        split(load(tails + at), digits);
        for (std::size_t g = 0; g < groups; ++g) {
          store_aligned(panel.codes[to + g][kT1BodyInputs / 4 + t] + at, digits[g]);
        }
      }
    }
  }
};

}  // namespace
}  // namespace tsq::kernels
