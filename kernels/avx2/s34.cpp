// s34: one row a 32-bit lane, 8 rows a vector.
//
// Trick: a look-up of the nibbles gives the codes of all four lanes of a quad, two bits each, as in
// a byte of t2; where the sign is set they become 2 - code. So one column goes on as t2 does
// (kernels/avx2/t2.cpp), with the activations of a group in the order of chunk, lane, quad.
// Layout: kernels/scalar/s34.cpp.
// Overflow: as t2: 32512 < 2^15 where all lanes 1 and 3 are +, with no room left.
// Order: one fma a group, ascending, or one int32 a row.
// Registers for 16 rows, of 16: sums 4, x 4, temporaries 4; constants come from memory.
#include "kernels/avx2/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx2 {
namespace {

// Bit k of four bytes as a byte of all ones or none.
inline __m256i mask_of(const std::uint8_t* bits) {
  std::int32_t four;
  __builtin_memcpy(&four, bits, sizeof four);
  const __m256i byte =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(four), byte);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

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

  // The codes of chunk c, rows 8 v to 8 v + 7.
  static __m256i codes(const std::uint8_t* group, std::size_t c, std::size_t v) {
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(kS34Table.codes)));
    const __m256i pair = load(group + P::kLineBytes + c / 2 * kPlane + 32 * v);
    const __m256i nibbles = c % 2 == 0 ? pair : _mm256_srli_epi16(pair, 4);
    const __m256i plus =
        _mm256_shuffle_epi8(table, _mm256_and_si256(nibbles, _mm256_set1_epi8(15)));
    const __m256i minus = _mm256_sub_epi8(_mm256_set1_epi8(static_cast<char>(kS34Negate)), plus);
    return _mm256_blendv_epi8(plus, minus, mask_of(group + kSigns + c * kS34SignBytes + 4 * v));
  }

  static void prefetch_group(const std::uint8_t* group) {
    for (std::size_t at = 0; at < kGroupBytes; at += 64) prefetch(group + at);
  }

  // The codes of a quad, which are the low byte of each 32-bit lane, a byte each.
  static __m256i spread(__m256i quad) {
    quad = _mm256_or_si256(quad, _mm256_slli_epi32(quad, 12));
    quad = _mm256_and_si256(quad, _mm256_set1_epi32(0x000F000F));
    quad = _mm256_or_si256(quad, _mm256_slli_epi32(quad, 6));
    return _mm256_and_si256(quad, _mm256_set1_epi8(3));
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel) {
    const std::uint8_t* from = row_block(w, block) + first * kGroupBytes;
    for (std::size_t g = 0; g < groups; ++g, from += kGroupBytes) {
      prefetch_group(from);
      P::decode(w, block, from, panel.scales + g * P::kParts);
      for (std::size_t v = 0; v < kQuarters; ++v) {
        for (std::size_t c = 0; c < kS34Chunks; ++c) {
          __m256i packed = codes(from, c, v);
          for (std::size_t i = 0; i < 4; ++i) {
            if (w.stride16) {  // lane i of the four quads
              store(panel.codes[g][16 * (c / 4) + 4 * i + c % 4] + 32 * v,
                    _mm256_and_si256(packed, _mm256_set1_epi8(3)));
              packed = _mm256_srli_epi32(packed, 2);
            } else {  // the four lanes of quad i
              store(panel.codes[g][4 * c + i] + 32 * v,
                    spread(_mm256_and_si256(packed, _mm256_set1_epi32(255))));
              packed = _mm256_srli_epi32(packed, 8);
            }
          }
        }
      }
    }
  }

  // A group's activations, byte 16 c + 4 p + j that of quad j of chunk c with lane p.
  static void order(const TernaryMatrix& w, const std::int8_t* q, std::int8_t* to) {
    if (w.stride16) {
      for (std::size_t c = 0; c < kS34Chunks; ++c) {
        for (std::size_t p = 0; p < 4; ++p) {
          __builtin_memcpy(to + 16 * c + 4 * p, q + 64 * (c / 4) + 16 * p + 4 * (c % 4), 4);
        }
      }
      return;
    }
    const __m256i transposed = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    for (std::size_t at = 0; at < kGroup; at += 32) {
      const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + at));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), _mm256_shuffle_epi8(in, transposed));
    }
  }

  // Dots (of codes, not weights) of rows 8 v to 8 v + 15 with a group.
  static void dots_of(const std::uint8_t* group, std::size_t v, const std::int8_t* q,
                      __m256i (&dots)[2]) {
    const __m256i plane0 = _mm256_set1_epi8(0x03);
    const __m256i plane1 = _mm256_set1_epi8(0x0C);
    __m256i once[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i fourfold[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::size_t c = 0; c < kS34Chunks; ++c, q += 16) {
      for (std::size_t i = 0; i < 2; ++i) {
        const __m256i low = codes(group, c, v + i);
        const __m256i high = _mm256_srli_epi16(low, 4);
        once[i] = dot2(once[i], _mm256_and_si256(low, plane0), broadcast4(q));
        fourfold[i] = dot2(fourfold[i], _mm256_and_si256(low, plane1), broadcast4(q + 4));
        once[i] = dot2(once[i], _mm256_and_si256(high, plane0), broadcast4(q + 8));
        fourfold[i] = dot2(fourfold[i], _mm256_and_si256(high, plane1), broadcast4(q + 12));
      }
    }
    for (int i = 0; i < 2; ++i) {
      dots[i] = _mm256_add_epi32(widen(once[i]), _mm256_srai_epi32(widen(fourfold[i]), 2));
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
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      std::int8_t q[kGroup];
      order(w, x.q + g * kGroup, q);
      const __m256i minus = _mm256_set1_epi32(x.sum[g]);
      const __m256 x_scale = _mm256_set1_ps(x.scale[g]);
      for (int s = 0; s < S; ++s) {
        prefetch_group(from[s]);
        for (int v = 0; v < kQuarters; v += 2) {
          __m256i dots[2];
          dots_of(from[s], static_cast<std::size_t>(v), q, dots);
          for (int i = 0; i < 2; ++i) {
            const __m256 w_scale = P::of_part(from[s], v + i, rows[s][v + i]);
            const __m256i dot = _mm256_sub_epi32(dots[i], minus);
            acc[s][v + i] = P::Sum::join(acc[s][v + i], dot, w_scale, x_scale);
          }
        }
        from[s] += kGroupBytes;
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

void s34_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<S34>(w, rows, x, y);
}

void s34_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<S34>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
