// s34: one row a 32-bit lane, 16 rows a vector.
//
// Trick: a look-up of the nibbles gives the codes of all four lanes of a quad, two bits each, as in
// a byte of t2; under the signs as a mask register they become 2 - code. So one column goes on as
// t2 does (kernels/avx512/t2.cpp), with the activations of a group in the order of chunk, lane,
// quad. The look-up needs no mask: its table is there four times.
// Layout: kernels/scalar/s34.cpp.
// Overflow: as t2.
// Order: one fma a group, ascending, or one int32 a row.
// Registers for S = 2 streams, of 32: sums 16, masks 4, x 4, float sums 4, constants 2, temporary.
#include "kernels/avx512/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx512 {
namespace {

// Of 64 activations: which one byte 16 c + 4 p + j is, quad j of chunk c with lane p.
struct Order {
  alignas(64) std::uint8_t from[64];
};
constexpr Order order(bool stride16) {
  Order o{};
  for (unsigned c = 0; c < 4; ++c) {
    for (unsigned p = 0; p < 4; ++p) {
      for (unsigned j = 0; j < 4; ++j) {
        o.from[16 * c + 4 * p + j] =
            static_cast<std::uint8_t>(stride16 ? 16 * p + 4 * c + j : 16 * c + 4 * j + p);
      }
    }
  }
  return o;
}
constexpr Order kConsecutive = order(false);
constexpr Order kStride16 = order(true);

template <class P>
struct S34 {
  using Scaling = P;
  static constexpr bool kHalfGroups = false;
  static constexpr std::size_t kGroupBytes = s34_group_bytes(P::kLines);
  static constexpr std::size_t kSigns = P::kLineBytes + kS34NibbleBytes;

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * s34_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  // The codes of chunk c, rows 16 h to 16 h + 15.
  static __m512i codes(const std::uint8_t* group, std::size_t c, std::size_t h) {
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kS34Table.codes)));
    const __m512i pair = load(group + P::kLineBytes + c / 2 * kPlane + 64 * h);
    const __m512i nibbles = c % 2 == 0 ? pair : _mm512_srli_epi16(pair, 4);
    const __m512i plus = _mm512_permutexvar_epi8(nibbles, table);
    __mmask64 signs;
    __builtin_memcpy(&signs, group + kSigns + c * kS34SignBytes + 8 * h, sizeof signs);
    const __m512i negate = _mm512_set1_epi8(static_cast<char>(kS34Negate));
    return _mm512_mask_sub_epi8(plus, signs, negate, plus);
  }

  static void prefetch_group(const std::uint8_t* group) {
    for (std::size_t at = 0; at < kGroupBytes; at += 64) prefetch(group + at);
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel) {
    const std::uint8_t* from = row_block(w, block) + first * kGroupBytes;
    const __m512i low2 = _mm512_set1_epi8(3);
    // Of the two rows in 64 bits: where the lanes of quad 0 start.
    const __m512i lanes = _mm512_set1_epi64(0x2624222006040200);
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      prefetch_group(from);
      P::decode(w, block, from, panel.scales + g * P::kParts);
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t c = 0; c < kS34Chunks; ++c) {
          const __m512i packed = codes(from, c, h);
          for (std::size_t i = 0; i < 4; ++i) {
            // Stride 16: lane i of the four quads; else the four lanes of quad i.
            const __m512i four =
                w.stride16 ? _mm512_srli_epi16(packed, static_cast<unsigned>(2 * i))
                           : _mm512_multishift_epi64_epi8(
                                 _mm512_add_epi8(lanes, _mm512_set1_epi8(static_cast<char>(8 * i))),
                                 packed);
            const std::size_t dword = w.stride16 ? 16 * (c / 4) + 4 * i + c % 4 : 4 * c + i;
            _mm512_store_si512(panel.codes[g][dword] + 64 * h, _mm512_and_si512(four, low2));
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
    const __m512i order = _mm512_load_si512(w.stride16 ? &kStride16 : &kConsecutive);
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
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      alignas(64) std::int8_t q[kGroup];
      for (std::size_t at = 0; at < kGroup; at += 64) {
        const __m512i in = _mm512_loadu_si512(x.q + g * kGroup + at);
        _mm512_store_si512(q + at, _mm512_permutexvar_epi8(order, in));
      }
      __m512i sum[S][2][4];
      for (int s = 0; s < S; ++s) {
        prefetch_group(from[s]);
        for (int h = 0; h < 2; ++h) {
          sum[s][h][0] = _mm512_set1_epi32(-x.sum[g]);
          sum[s][h][1] = sum[s][h][2] = sum[s][h][3] = _mm512_setzero_si512();
        }
      }
      for (std::size_t c = 0; c < kS34Chunks; ++c) {
        const __m512i xs[4] = {broadcast4(q + 16 * c), broadcast4(q + 16 * c + 4),
                               broadcast4(q + 16 * c + 8), broadcast4(q + 16 * c + 12)};
        for (int s = 0; s < S; ++s) {
          for (int h = 0; h < 2; ++h) {
            const __m512i packed = codes(from[s], c, static_cast<std::size_t>(h));
            for (int p = 0; p < 4; ++p) {
              sum[s][h][p] = dot4(sum[s][h][p], _mm512_and_si512(packed, mask[p]), xs[p]);
            }
          }
        }
      }
      const __m512 x_scale = _mm512_set1_ps(x.scale[g]);
      for (int s = 0; s < S; ++s) {
        for (int h = 0; h < 2; ++h) {
          const __m512i(&t)[4] = sum[s][h];
          const __m512i dot = _mm512_add_epi32(
              _mm512_add_epi32(t[0], _mm512_srai_epi32(t[1], 2)),
              _mm512_add_epi32(_mm512_srai_epi32(t[2], 4), _mm512_srai_epi32(t[3], 6)));
          const __m512 w_scale = P::of_part(from[s], h, rows[s][h]);
          acc[s][h] = P::Sum::join(acc[s][h], dot, w_scale, x_scale);
        }
        from[s] += kGroupBytes;
      }
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int h = 0; h < 2; ++h) out.store(0, h, P::Sum::total(acc[s][h], rows[s][h], x, 0));
    }
  }
};

}  // namespace

void s34_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<S34>(w, rows, x, y);
}

void s34_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<S34>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx512
