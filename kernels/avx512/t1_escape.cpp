// t1 in its escape code times one column: one row a 32-bit lane, 16 rows a vector.
//
// Trick: two indices of at most 6 bits come from a byte without a multiplication, and vpermb looks
// up a digit of 64 bytes at a time. Of t, the first three digits, and u, the last two, a byte b is
// 8 t + u, or 216 + t where u is 8. Then b / 8 + max(b - 215, 0) is t, or 28 + t + t / 8 where u is
// 8; max(b mod 8, b - 208) is u, or 8 + t.
// Layout: kernels/repack.h, kernels/scalar/t1.cpp.
// Overflow: 128 * 2 * 127 in 32 bits.
// Order: one fma a group, ascending, or one int32 a row.
// Registers for S = 2 streams, of 32: tables 5, x 5, sums 4, float sums 4, constants 4,
// temporaries.
#include "kernels/avx512/dot.h"
#include "kernels/isa.h"
#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels::avx512 {
namespace {

// Digit d of what an index stands for.
struct DigitTable {
  alignas(64) std::uint8_t digit[64];
};
constexpr DigitTable first_table(unsigned divisor) {
  DigitTable table{};
  for (unsigned t = 0; t < 27; ++t) {
    const auto digit = static_cast<std::uint8_t>(t / divisor % 3);
    table.digit[t] = table.digit[28 + t + t / 8] = digit;
  }
  return table;
}
constexpr DigitTable second_table(unsigned divisor) {
  DigitTable table{};
  for (unsigned u = 0; u < 8; ++u) table.digit[u] = static_cast<std::uint8_t>(u / divisor % 3);
  for (unsigned t = 0; t < 27; ++t) table.digit[8 + t] = 2;
  return table;
}
constexpr DigitTable kDigitTables[5] = {first_table(9), first_table(3), first_table(1),
                                        second_table(3), second_table(1)};

// What the tables of the first three and the last two digits are looked up by.
struct Indices {
  __m512i of[2];
};
Indices indices(__m512i bytes) {
  const __m512i eighth = _mm512_and_si512(_mm512_srli_epi16(bytes, 3), _mm512_set1_epi8(31));
  const __m512i rest = _mm512_and_si512(bytes, _mm512_set1_epi8(7));
  const __m512i from216 = _mm512_subs_epu8(bytes, _mm512_set1_epi8(static_cast<char>(215)));
  const __m512i from208 = _mm512_subs_epu8(bytes, _mm512_set1_epi8(static_cast<char>(208)));
  return {{_mm512_add_epi8(eighth, from216), _mm512_max_epu8(rest, from208)}};
}

__m512i digit(const Indices& indices, std::size_t d) {
  return _mm512_permutexvar_epi8(indices.of[d < 3 ? 0 : 1], _mm512_load_si512(&kDigitTables[d]));
}

template <class P>
struct T1Escape {
  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * t1_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  template <int S, int kColumns>
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
        acc[s][h] = P::Sum::from_memory(_mm512_setzero_ps());
      }
    }
    for (std::size_t first = 0; first < groups; first += kT1Super) {
      const std::size_t r = min_size(kT1Super, groups - first);
      Indices tails[S][2][2];
      for (int s = 0; s < S; ++s) {
        for (int t = 0; t < 2; ++t) {
          for (int h = 0; h < 2; ++h) {
            const std::uint8_t* at = from[s] + r * P::kLineBytes + t * kPlane + 64 * h;
            prefetch(at);
            tails[s][t][h] = indices(load(at));
          }
        }
      }
      for (std::size_t i = 0; i < r; ++i) {
        const std::size_t g = first + i;
        const std::int8_t* q = x.q + g * kGroup;
        __m512i sums[S][2];
        for (int s = 0; s < S; ++s) {
          for (int h = 0; h < 2; ++h) {
            sums[s][h] = _mm512_set1_epi32(-x.sum[g]);
            for (int t = 0; t < 2; ++t) {
              sums[s][h] =
                  dot4(sums[s][h], digit(tails[s][t][h], i), broadcast4(q + kT1BodyInputs + 4 * t));
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
              const Indices by = indices(load(at));
              for (std::size_t d = 0; d < 5; ++d) {
                sums[s][h] = dot4(sums[s][h], digit(by, d), xs[d]);
              }
            }
          }
        }
        const __m512 x_scale = _mm512_set1_ps(x.scale[g]);
        for (int s = 0; s < S; ++s) {
          const std::uint8_t* scales = from[s] + i * P::kLineBytes;
          if constexpr (P::kLines != 0) prefetch(scales);
          for (int h = 0; h < 2; ++h) {
            const __m512 w_scale = P::of_part(scales, h, rows[s][h]);
            acc[s][h] = P::Sum::join(acc[s][h], sums[s][h], w_scale, x_scale);
          }
        }
      }
      for (int s = 0; s < S; ++s) from[s] += t1_super_bytes(r, P::kLines);
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int h = 0; h < 2; ++h)
        store_outputs(out, 0, h, P::Sum::total(acc[s][h], rows[s][h], x, 0));
    }
  }
};

}  // namespace

void t1_escape_gemv(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemv<T1Escape>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx512
