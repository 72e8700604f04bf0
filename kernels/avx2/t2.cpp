// t2: one row a 32-bit lane, 8 rows a vector.
//
// Trick (one column): of the four 2-bit planes of a byte, planes 0 and 1 are masked where they lie
// and planes 2 and 3 after one shift, so two accumulators hold the plane sums times 1 and times 4.
// Layout: kernels/scalar/t2.cpp.
// Overflow: a 16-bit lane of the 4-fold planes gets 16 pairs of at most 2 * 8 * 127 a group: 32512
// < 2^15, with no room left. Order: one fma a group or half group, ascending, or one int32 a row.
// Registers for 16 rows, of 16: sums 4, x 4, masks 2, temporaries 3; the float sums wait in memory.
#include "kernels/avx2/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx2 {
namespace {

template <class P>
struct T2 {
  using Scaling = P;
  static constexpr bool kHalfGroups = true;
  static constexpr std::size_t kGroupBytes = t2_group_bytes(P::kLines);

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * t2_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel) {
    const std::uint8_t* from = row_block(w, block) + first * kGroupBytes;
    const __m256i low2 = _mm256_set1_epi8(3);
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      for (std::size_t l = 0; l < P::kLines; ++l) prefetch(from + l * kScaleLine);
      P::decode(w, block, from, panel.scales + g * P::kParts);
      for (std::size_t c = 0; c < kT2Chunks; ++c) {
        const std::uint8_t* at = from + P::kLineBytes + c * kPlane;
        prefetch(at);
        prefetch(at + 64);
        for (int v = 0; v < kQuarters; ++v) {
          __m256i codes = load(at + 32 * v);
          for (std::size_t p = 0; p < 4; ++p) {
            store(panel.codes[g][4 * c + p] + 32 * v, _mm256_and_si256(codes, low2));
            codes = _mm256_srli_epi16(codes, 2);
          }
        }
      }
    }
  }

  // Dots (of codes, not weights) of 16 rows with a part of a group; at: their first dwords.
  static void dot(const std::uint8_t* at, const std::int8_t* q, __m256i (&dots)[2]) {
    const __m256i plane0 = _mm256_set1_epi8(0x03);
    const __m256i plane1 = _mm256_set1_epi8(0x0C);
    __m256i once[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i fourfold[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 1  // unrolled, GCC 12 spills
    for (std::size_t c = 0; c < kT2Chunks / P::kParts; ++c, at += kPlane, q += 16) {
      prefetch(at);
      const __m256i xs[4] = {broadcast4(q), broadcast4(q + 4), broadcast4(q + 8),
                             broadcast4(q + 12)};
      for (int v = 0; v < 2; ++v) {
        const __m256i low = load(at + 32 * v);
        const __m256i high = _mm256_srli_epi16(low, 4);
        once[v] = dot2(once[v], _mm256_and_si256(low, plane0), xs[0]);
        fourfold[v] = dot2(fourfold[v], _mm256_and_si256(low, plane1), xs[1]);
        once[v] = dot2(once[v], _mm256_and_si256(high, plane0), xs[2]);
        fourfold[v] = dot2(fourfold[v], _mm256_and_si256(high, plane1), xs[3]);
      }
    }
    for (int v = 0; v < 2; ++v) {
      dots[v] = _mm256_add_epi32(widen(once[v]), _mm256_srai_epi32(widen(fourfold[v]), 2));
    }
  }

  template <int S>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const std::uint8_t* from[S];
    __m256 rows[S][kQuarters];  // their scales, if the body has none
    typename P::Sum::Vector acc[S][kQuarters];
    for (int s = 0; s < S; ++s) {
      from[s] = row_block(w, blocks[s]);
      for (int v = 0; v < kQuarters; ++v) {
        rows[s][v] = P::of_rows(w, blocks[s], v);
        acc[s][v] = P::Sum::from_y(_mm256_setzero_ps());
      }
    }
    for (std::size_t i = 0; i < w.cols / kGroup * P::kParts; ++i) {
      const std::size_t g = i / P::kParts;
      const std::size_t part = i % P::kParts;
      const std::size_t planes = P::kLineBytes + part * (kT2Chunks / P::kParts * kPlane);
      const __m256i minus = _mm256_set1_epi32(part_sum<P::kParts>(x, g, part));
      const __m256 x_scale = _mm256_set1_ps(x.scale[g]);
      for (int s = 0; s < S; ++s) {
        const std::uint8_t* line = from[s] + part * kScaleLine;
        if constexpr (P::kLines != 0) prefetch(line);
        for (int half = 0; half < 2; ++half) {
          __m256i dots[2];
          dot(from[s] + planes + 64 * half, x.q + i * (kGroup / P::kParts), dots);
          for (int k = 0; k < 2; ++k) {
            const int v = 2 * half + k;
            const __m256 w_scale = P::of_part(line, v, rows[s][v]);
            acc[s][v] = P::Sum::join(acc[s][v], _mm256_sub_epi32(dots[k], minus), w_scale, x_scale);
          }
        }
        if (part + 1 == P::kParts) from[s] += kGroupBytes;
      }
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int v = 0; v < kQuarters; ++v) {
        out.store(0, v, P::Sum::total(acc[s][v], rows[s][v], x, 0));
      }
    }
  }
};

}  // namespace

void t2_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T2>(w, rows, x, y);
}

void t2_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T2>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
