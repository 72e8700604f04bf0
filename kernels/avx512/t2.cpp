// t2: one row a 32-bit lane, 16 rows a vector.
//
// Trick (one column): the four 2-bit planes of a byte are masked where they lie, never shifted, and
// meet four accumulators, which then hold the plane sums times 1, 4, 16 and 64, exactly. -sum(x)
// (codes are weight + 1) is the first one's start value.
// Layout: kernels/scalar/t2.cpp.
// Overflow: the 64-fold plane is at most 32 * 2 * 64 * 127 = 520192 a group.
// Order: one fma a group or half group, ascending, or one int32 a row.
// Registers for S = 2 streams, of 32: sums 16, masks 4, x 4, float sums 4, temporaries 3.
#include "kernels/avx512/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx512 {
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
    const __m512i low2 = _mm512_set1_epi8(3);
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      for (std::size_t l = 0; l < P::kLines; ++l) prefetch(from + l * kScaleLine);
      P::decode(w, block, from, panel.scales + g * P::kParts);
      for (std::size_t c = 0; c < kT2Chunks; ++c) {
        for (std::size_t h = 0; h < 2; ++h) {
          const std::uint8_t* at = from + P::kLineBytes + c * kPlane + 64 * h;
          prefetch(at);
          __m512i codes = load(at);
          for (std::size_t p = 0; p < 4; ++p) {
            _mm512_store_si512(panel.codes[g][4 * c + p] + 64 * h, _mm512_and_si512(codes, low2));
            codes = _mm512_srli_epi16(codes, 2);
          }
        }
      }
    }
  }

  template <int S>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const __m512i mask[4] = {_mm512_set1_epi8(0x03), _mm512_set1_epi8(0x0C), _mm512_set1_epi8(0x30),
                             _mm512_set1_epi8(static_cast<char>(0xC0))};
    const std::uint8_t* from[S];
    __m512 rows[S][2];  // their scales, if the body has none
    typename P::Sum::Vector acc[S][2];
    for (int s = 0; s < S; ++s) {
      from[s] = row_block(w, blocks[s]);
      for (int h = 0; h < 2; ++h) {
        rows[s][h] = P::of_rows(w, blocks[s], h);
        acc[s][h] = P::Sum::from_y(_mm512_setzero_ps());
      }
    }
    for (std::size_t i = 0; i < w.cols / kGroup * P::kParts; ++i) {
      constexpr std::size_t kChunks = kT2Chunks / P::kParts;
      const std::size_t g = i / P::kParts;
      const std::size_t part = i % P::kParts;
      const std::int8_t* q = x.q + i * (kGroup / P::kParts);
      __m512i sum[S][2][4];
      for (int s = 0; s < S; ++s) {
        for (int h = 0; h < 2; ++h) {
          sum[s][h][0] = _mm512_set1_epi32(-part_sum<P::kParts>(x, g, part));
          sum[s][h][1] = sum[s][h][2] = sum[s][h][3] = _mm512_setzero_si512();
        }
      }
      const std::size_t planes = P::kLineBytes + part * kChunks * kPlane;
      for (std::size_t c = 0; c < kChunks; ++c) {
        const __m512i xs[4] = {broadcast4(q + 16 * c), broadcast4(q + 16 * c + 4),
                               broadcast4(q + 16 * c + 8), broadcast4(q + 16 * c + 12)};
        for (int s = 0; s < S; ++s) {
          for (int h = 0; h < 2; ++h) {
            const std::uint8_t* at = from[s] + planes + c * kPlane + 64 * h;
            prefetch(at);
            const __m512i codes = load(at);
            for (int p = 0; p < 4; ++p) {
              sum[s][h][p] = dot4(sum[s][h][p], _mm512_and_si512(codes, mask[p]), xs[p]);
            }
          }
        }
      }
      const __m512 x_scale = _mm512_set1_ps(x.scale[g]);
      for (int s = 0; s < S; ++s) {
        const std::uint8_t* line = from[s] + part * kScaleLine;
        if constexpr (P::kLines != 0) prefetch(line);
        for (int h = 0; h < 2; ++h) {
          const __m512i(&t)[4] = sum[s][h];
          const __m512i dot = _mm512_add_epi32(
              _mm512_add_epi32(t[0], _mm512_srai_epi32(t[1], 2)),
              _mm512_add_epi32(_mm512_srai_epi32(t[2], 4), _mm512_srai_epi32(t[3], 6)));
          const __m512 w_scale = P::of_part(line, h, rows[s][h]);
          acc[s][h] = P::Sum::join(acc[s][h], dot, w_scale, x_scale);
        }
        if (part + 1 == P::kParts) from[s] += kGroupBytes;
      }
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int h = 0; h < 2; ++h) out.store(0, h, P::Sum::total(acc[s][h], rows[s][h], x, 0));
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

}  // namespace tsq::kernels::avx512
