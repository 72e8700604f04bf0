// t1: one row a 32-bit lane, 8 rows a vector.
//
// Trick: nine times a byte has two digits in its high byte (0 to 8), which two table look-ups part,
// and the fraction of the others in its low one. Twice that, then once three times.
// vpmaddubsw with (9, 0) and (0, 9) multiplies the even and the odd bytes without unpacking them.
// Layout: kernels/scalar/t1.cpp.
// Overflow: 9 * 255 < 2^15; a 16-bit lane of a dot gets 32 pairs of at most 2 * 2 * 127: 16256.
// Order: one fma a group, ascending, or one int32 a row.
// Registers, of 16: sums 4, x 5, tables 2, masks 2, temporaries; factors come from memory.
#include "kernels/avx2/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx2 {
namespace {

// factor * v for every byte, its two bytes apart.
struct Product {
  __m256i high;
  __m256i low;
};
inline Product multiply(__m256i v, int factor) {
  const __m256i even = _mm256_maddubs_epi16(v, _mm256_set1_epi16(static_cast<short>(factor)));
  const __m256i odd = _mm256_maddubs_epi16(v, _mm256_set1_epi16(static_cast<short>(factor << 8)));
  const __m256i low8 = _mm256_set1_epi16(0x00FF);
  return {_mm256_or_si256(_mm256_srli_epi16(even, 8), _mm256_andnot_si256(low8, odd)),
          _mm256_or_si256(_mm256_and_si256(even, low8), _mm256_slli_epi16(odd, 8))};
}

// The five digits of every byte.
inline void split(__m256i v, __m256i (&digits)[5]) {
  const __m256i third =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0));
  const __m256i rest =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0));
  const Product first = multiply(v, 9);
  const Product second = multiply(first.low, 9);
  digits[0] = _mm256_shuffle_epi8(third, first.high);
  digits[1] = _mm256_shuffle_epi8(rest, first.high);
  digits[2] = _mm256_shuffle_epi8(third, second.high);
  digits[3] = _mm256_shuffle_epi8(rest, second.high);
  digits[4] = multiply(second.low, 3).high;
}

template <class P>
struct T1 {
  using Scaling = P;
  static constexpr bool kHalfGroups = false;

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * t1_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  static void decode(const TernaryMatrix& w, std::size_t block, std::size_t first,
                     std::size_t groups, Panel& panel) {
    const std::uint8_t* scales =
        row_block(w, block) + t1_super(w.cols / kGroup, first, P::kLines).offset;
    const std::uint8_t* tails = scales + groups * P::kLineBytes;
    const std::uint8_t* body = tails + kT1TailBytes;
    __m256i digits[5];
    for (std::size_t g = 0; g < groups; ++g, scales += P::kLineBytes) {
      if constexpr (P::kLines != 0) prefetch(scales);
      P::decode(w, block, scales, panel.scales + g * P::kParts);
      for (std::size_t c = 0; c < kT1Chunks; ++c, body += kPlane) {
        prefetch(body);
        prefetch(body + 64);
        for (int v = 0; v < kQuarters; ++v) {
          split(load(body + 32 * v), digits);
          for (std::size_t d = 0; d < 5; ++d) store(panel.codes[g][5 * c + d] + 32 * v, digits[d]);
        }
      }
    }
    for (std::size_t t = 0; t < 2; ++t, tails += kPlane) {
      prefetch(tails);
      prefetch(tails + 64);
      for (int v = 0; v < kQuarters; ++v) {
        split(load(tails + 32 * v), digits);
        for (std::size_t g = 0; g < groups; ++g) {
          store(panel.codes[g][kT1BodyInputs / 4 + t] + 32 * v, digits[g]);
        }
      }
    }
  }

  // The tail digits of a row block's super-block: [group][dword][vector].
  using Tails = __m256i[kT1Super][2][kQuarters];

  static void split_tails(const std::uint8_t* at, Tails& tails) {
    for (int t = 0; t < 2; ++t, at += kPlane) {
      prefetch(at);
      prefetch(at + 64);
      for (int v = 0; v < kQuarters; ++v) {
        __m256i digits[5];
        split(load(at + 32 * v), digits);
        for (std::size_t d = 0; d < kT1Super; ++d) tails[d][t][v] = digits[d];
      }
    }
  }

  template <int S>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const std::size_t groups = w.cols / kGroup;
    const std::uint8_t* from[S];
    __m256 rows[S][kQuarters];  // their scales, if the body has none
    typename P::Sum::Vector acc[S][kQuarters];
    Tails tails[S];
    for (int s = 0; s < S; ++s) {
      from[s] = row_block(w, blocks[s]);
      for (int v = 0; v < kQuarters; ++v) {
        rows[s][v] = P::of_rows(w, blocks[s], v);
        acc[s][v] = P::Sum::from_y(_mm256_setzero_ps());
      }
    }
    for (std::size_t first = 0; first < groups; first += kT1Super) {
      const std::size_t r = min_size(kT1Super, groups - first);
      for (int s = 0; s < S; ++s) split_tails(from[s] + r * P::kLineBytes, tails[s]);
      for (std::size_t i = 0; i < r; ++i) {
        const std::size_t g = first + i;
        const std::int8_t* q = x.q + g * kGroup;
        const __m256i minus = _mm256_set1_epi32(x.sum[g]);
        const __m256 x_scale = _mm256_set1_ps(x.scale[g]);
        for (int s = 0; s < S; ++s) {
          __m256i sum[kQuarters];
          for (int v = 0; v < kQuarters; ++v) {
            const __m256i first_tail =
                _mm256_maddubs_epi16(tails[s][i][0][v], broadcast4(q + kT1BodyInputs));
            sum[v] = dot2(first_tail, tails[s][i][1][v], broadcast4(q + kT1BodyInputs + 4));
          }
          const std::uint8_t* at =
              from[s] + r * P::kLineBytes + kT1TailBytes + i * kT1Chunks * kPlane;
          for (std::size_t c = 0; c < kT1Chunks; ++c, at += kPlane) {
            prefetch(at);
            prefetch(at + 64);
            for (int v = 0; v < kQuarters; ++v) {
              __m256i digits[5];
              split(load(at + 32 * v), digits);
              for (std::size_t d = 0; d < 5; ++d) {
                sum[v] = dot2(sum[v], digits[d], broadcast4(q + 20 * c + 4 * d));
              }
            }
          }
          const std::uint8_t* scales = from[s] + i * P::kLineBytes;
          if constexpr (P::kLines != 0) prefetch(scales);
          for (int v = 0; v < kQuarters; ++v) {
            const __m256 w_scale = P::of_part(scales, v, rows[s][v]);
            const __m256i dot = _mm256_sub_epi32(widen(sum[v]), minus);
            acc[s][v] = P::Sum::join(acc[s][v], dot, w_scale, x_scale);
          }
        }
      }
      for (int s = 0; s < S; ++s) from[s] += t1_super_bytes(r, P::kLines);
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

void t1_gemm(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemm<T1>(w, rows, x, y);
}

void t1_gemm_f32(const TernaryMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  ternary_gemm_f32<T1>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
