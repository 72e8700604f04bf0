// t1: one row a 32-bit lane, 16 rows a vector.
//
// Trick (one column): no digit is ever extracted. A byte v_0 is a fixed-point fraction; with
// v_(k+1) = 3 v_k mod 256 digit k is (3 v_k - v_(k+1)) / 256, so over all bytes and digits
// sum(digit x) = (3 sum(v_k x_k) - sum(v_(k+1) x_k)) / 256, exactly: two byte additions and two
// dot products a digit. -sum(x) enters as 256 sum(x), the second sum's start value.
// For many columns the digits are looked up: 27 v has the first three in its high byte and leaves
// the fraction of the other two in its low one, whose 9-fold has those.
// Layout: kernels/scalar/t1.cpp.
// Overflow: 3 * 128 * 255 * 127 = 12.4 million; vpdpbusd does not saturate.
// Order: one fma a group, ascending, or one int32 a row.
// Registers for S = 2 streams, of 32: sums 8, tails 8, float sums 4, x 5, temporaries.
#include "kernels/avx512/panel.h"
#include "kernels/isa.h"
#include "kernels/ternary_gemm.h"

namespace tsq::kernels::avx512 {
namespace {

inline __m512i triple(__m512i v) { return _mm512_add_epi8(v, _mm512_add_epi8(v, v)); }

// Digit tables: i / 9, i / 3 and i, modulo 3.
struct DigitTable {
  alignas(64) std::uint8_t digit[64];
};
constexpr DigitTable digit_table(int divisor) {
  DigitTable t{};
  for (int i = 0; i < 27; ++i) t.digit[i] = static_cast<std::uint8_t>(i / divisor % 3);
  return t;
}
constexpr DigitTable kDigitTables[3] = {digit_table(9), digit_table(3), digit_table(1)};

// factor * v for every byte, its two bytes apart; factor < 128.
struct Product {
  __m512i high;
  __m512i low;
};
Product multiply(__m512i v, int factor) {
  constexpr __mmask64 kOdd = 0xAAAAAAAAAAAAAAAA;
  const __m512i even = _mm512_maddubs_epi16(v, _mm512_set1_epi16(static_cast<short>(factor)));
  const __m512i odd = _mm512_maddubs_epi16(v, _mm512_set1_epi16(static_cast<short>(factor << 8)));
  return {_mm512_mask_mov_epi8(_mm512_srli_epi16(even, 8), kOdd, odd),
          _mm512_mask_mov_epi8(even, kOdd, _mm512_slli_epi16(odd, 8))};
}

// The five digits of every byte.
void split(__m512i v, __m512i (&digits)[5]) {
  const Product first = multiply(v, 27);
  const Product second = multiply(first.low, 9);
  for (int d = 0; d < 5; ++d) {
    const __m512i table = _mm512_load_si512(&kDigitTables[d < 3 ? d : d - 2]);
    digits[d] = _mm512_permutexvar_epi8(d < 3 ? first.high : second.high, table);
  }
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
    __m512i digits[5];
    for (std::size_t g = 0; g < groups; ++g, scales += P::kLineBytes) {
      if constexpr (P::kLines != 0) prefetch(scales);
      P::decode(w, block, scales, panel.scales + g * P::kParts);
      for (std::size_t c = 0; c < kT1Chunks; ++c) {
        for (std::size_t h = 0; h < 2; ++h, body += 64) {
          prefetch(body);
          split(load(body), digits);
          for (std::size_t d = 0; d < 5; ++d) {
            _mm512_store_si512(panel.codes[g][5 * c + d] + 64 * h, digits[d]);
          }
        }
      }
    }
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t h = 0; h < 2; ++h, tails += 64) {
        prefetch(tails);
        split(load(tails), digits);
        for (std::size_t g = 0; g < groups; ++g) {
          _mm512_store_si512(panel.codes[g][kT1BodyInputs / 4 + t] + 64 * h, digits[g]);
        }
      }
    }
  }

  // The two sums of a lane.
  struct Sums {
    __m512i now;   // of v_k x_k
    __m512i next;  // of v_(k+1) x_k
  };
  static inline void step(Sums& sums, __m512i& v, __m512i x) {
    sums.now = dot4(sums.now, v, x);
    v = triple(v);
    sums.next = dot4(sums.next, v, x);
  }

  template <int S>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const std::size_t groups = w.cols / kGroup;
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
    for (std::size_t first = 0; first < groups; first += kT1Super) {
      const std::size_t r = min_size(kT1Super, groups - first);
      __m512i tail[S][2][2];
      for (int s = 0; s < S; ++s) {
        for (int t = 0; t < 2; ++t) {
          for (int h = 0; h < 2; ++h) {
            const std::uint8_t* at = from[s] + r * P::kLineBytes + t * kPlane + 64 * h;
            prefetch(at);
            tail[s][t][h] = load(at);
          }
        }
      }
      for (std::size_t i = 0; i < r; ++i) {
        const std::size_t g = first + i;
        const std::int8_t* q = x.q + g * kGroup;
        Sums sums[S][2];
        for (int s = 0; s < S; ++s) {
          for (int h = 0; h < 2; ++h) {
            sums[s][h].now = _mm512_setzero_si512();
            sums[s][h].next = _mm512_set1_epi32(256 * x.sum[g]);
            for (int t = 0; t < 2; ++t) {
              step(sums[s][h], tail[s][t][h], broadcast4(q + kT1BodyInputs + 4 * t));
            }
          }
        }
        const std::size_t body = r * P::kLineBytes + kT1TailBytes + i * kT1Chunks * kPlane;
        for (std::size_t c = 0; c < kT1Chunks; ++c) {
          const std::int8_t* at_x = q + 20 * c;
          const __m512i xs[5] = {broadcast4(at_x), broadcast4(at_x + 4), broadcast4(at_x + 8),
                                 broadcast4(at_x + 12), broadcast4(at_x + 16)};
          for (int s = 0; s < S; ++s) {
            for (int h = 0; h < 2; ++h) {
              const std::uint8_t* at = from[s] + body + c * kPlane + 64 * h;
              prefetch(at);
              __m512i v = load(at);
              for (int d = 0; d < 5; ++d) step(sums[s][h], v, xs[d]);
            }
          }
        }
        const __m512 x_scale = _mm512_set1_ps(x.scale[g]);
        for (int s = 0; s < S; ++s) {
          const std::uint8_t* scales = from[s] + i * P::kLineBytes;
          if constexpr (P::kLines != 0) prefetch(scales);
          for (int h = 0; h < 2; ++h) {
            const __m512i now = sums[s][h].now;
            const __m512i three = _mm512_add_epi32(now, _mm512_add_epi32(now, now));
            const __m512i dot = _mm512_srai_epi32(_mm512_sub_epi32(three, sums[s][h].next), 8);
            const __m512 w_scale = P::of_part(scales, h, rows[s][h]);
            acc[s][h] = P::Sum::join(acc[s][h], dot, w_scale, x_scale);
          }
        }
      }
      for (int s = 0; s < S; ++s) from[s] += t1_super_bytes(r, P::kLines);
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int h = 0; h < 2; ++h) out.store(0, h, P::Sum::total(acc[s][h], rows[s][h], x, 0));
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

}  // namespace tsq::kernels::avx512
