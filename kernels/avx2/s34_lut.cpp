// s34 in LUT order times one column: one row a byte lane, 32 rows a vector.
//
// Trick: what a quad adds to a dot is one of 16 sums T of its activations, or minus one of them.
// They are computed once a column, and a shuffle looks up those of 32 rows at a time. |T| <= 381
// takes two bytes: T = 31 h + l with h in [-12, 12], l in [-15, 15].
// Layout: kernels/repack.h.
// Overflow: eight h or l fit a byte. A group's sum is at most 32 * 381 = 12192.
// Order: one fma a group, ascending, or one int32 a row.
// Registers for S = 2 streams, of 16: sums of bytes 4, signs 4, tables 2, constants 2,
// temporaries 4.
#include "kernels/avx2/dot.h"
#include "kernels/isa.h"
#include "kernels/x86/ternary_gemm.h"

namespace tsq::kernels::avx2 {
namespace {

constexpr std::size_t kNibbleVectors = 16;
constexpr std::size_t kSignVectors = 4;
constexpr std::size_t kTable = 32;  // l of the 16 nibbles, then h
constexpr std::size_t kQuads = kGroup / 4;

// A row's quads as 16 bits, rows 0-7 and 16-23, and 8-15 and 24-31.
struct Sums {
  __m256i low;
  __m256i high;
};

template <class P>
struct S34Lut {
  static constexpr std::size_t kGroupBytes = s34_group_bytes(P::kLines);
  static constexpr std::size_t kSigns = P::kLineBytes + 32 * kNibbleVectors;

  static const std::uint8_t* row_block(const TernaryMatrix& w, std::size_t block) {
    return reinterpret_cast<const std::uint8_t*>(w.body) +
           block * s34_row_block_bytes(w.cols / kGroup, P::kLines);
  }

  static __m256i table(const std::int8_t* from) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  }

  // Adds the quads 8 v to 8 v + 7 of S groups, whose tables are given.
  template <int S>
  static void add_eight(const std::uint8_t* const (&groups)[S], std::size_t v,
                        const std::int8_t* tables, Sums (&sums)[S]) {
    const __m256i low4 = _mm256_set1_epi8(15);
    const __m256i one = _mm256_set1_epi8(1);
    // The sign of the next quad on top, and never 0: the last quad's own place is taken by a 1.
    __m256i signs[S], l[S], h[S];
    for (int s = 0; s < S; ++s) {
      signs[s] = _mm256_or_si256(load(groups[s] + kSigns + 32 * v), one);
      l[s] = h[s] = _mm256_setzero_si256();
    }
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < 2; ++k, tables += kTable) {
        const __m256i l_table = table(tables);
        const __m256i h_table = table(tables + 16);
        for (int s = 0; s < S; ++s) {
          const __m256i pair = load(groups[s] + P::kLineBytes + 32 * (4 * v + i));
          const __m256i nibbles =
              _mm256_and_si256(k == 0 ? pair : _mm256_srli_epi16(pair, 4), low4);
          if (i == 3 && k == 1) {
            const __m256i bits = load(groups[s] + kSigns + 32 * v);
            signs[s] = _mm256_or_si256(_mm256_slli_epi16(bits, 7), one);
          }
          l[s] = _mm256_add_epi8(l[s],
                                 _mm256_sign_epi8(_mm256_shuffle_epi8(l_table, nibbles), signs[s]));
          h[s] = _mm256_add_epi8(h[s],
                                 _mm256_sign_epi8(_mm256_shuffle_epi8(h_table, nibbles), signs[s]));
          signs[s] = _mm256_add_epi8(signs[s], signs[s]);
          // Left alone, GCC 12 adds up a tree of all eight, most of it in memory.
          __asm__("" : "+x"(l[s]), "+x"(h[s]));
        }
      }
    }
    const __m256i weights = _mm256_set1_epi16(31 << 8 | 1);
    for (int s = 0; s < S; ++s) {
      sums[s].low = _mm256_add_epi16(
          sums[s].low, _mm256_maddubs_epi16(weights, _mm256_unpacklo_epi8(l[s], h[s])));
      sums[s].high = _mm256_add_epi16(
          sums[s].high, _mm256_maddubs_epi16(weights, _mm256_unpackhi_epi8(l[s], h[s])));
    }
  }

  static void prefetch_group(const std::uint8_t* group) {
    for (std::size_t at = 0; at < kGroupBytes; at += 64) prefetch(group + at);
  }

  template <int S, int kColumns>
  static void gemv(const TernaryMatrix& w, const std::size_t (&blocks)[S], const Q8Matrix& x,
                   Outputs y) {
    const std::uint8_t* from[S];
    __m256 rows[S][kVectors];  // their scales, if the body has none
    typename P::Sum::Vector acc[S][kVectors];
    for (int s = 0; s < S; ++s) {
      from[s] = row_block(w, blocks[s]);
      for (int v = 0; v < kVectors; ++v) {
        rows[s][v] = P::of_rows(w, blocks[s], v);
        acc[s][v] = P::Sum::from_memory(_mm256_setzero_ps());
      }
    }
    for (std::size_t g = 0; g < w.cols / kGroup; ++g) {
      const std::int8_t* tables = x.tables + g * kQuads * kTable;
      const __m256 x_scale = _mm256_set1_ps(x.scale[g]);
      Sums sums[S];
      for (int s = 0; s < S; ++s) {
        prefetch_group(from[s]);
        sums[s].low = sums[s].high = _mm256_setzero_si256();
      }
      for (std::size_t v = 0; v < kSignVectors; ++v) {
        add_eight(from, v, tables + 8 * kTable * v, sums);
      }
      for (int s = 0; s < S; ++s) {
        const __m128i quarters[kVectors] = {
            _mm256_castsi256_si128(sums[s].low), _mm256_castsi256_si128(sums[s].high),
            _mm256_extracti128_si256(sums[s].low, 1), _mm256_extracti128_si256(sums[s].high, 1)};
        for (int v = 0; v < kVectors; ++v) {
          const __m256 w_scale = P::of_part(from[s], v, rows[s][v]);
          const __m256i dot = _mm256_cvtepi16_epi32(quarters[v]);
          acc[s][v] = P::Sum::join(acc[s][v], dot, w_scale, x_scale);
        }
        from[s] += kGroupBytes;
      }
    }
    for (int s = 0; s < S; ++s) {
      const BlockOutputs out = block_outputs(w, blocks[s], y);
      for (int v = 0; v < kVectors; ++v) {
        store_outputs(out, 0, v, P::Sum::total(acc[s][v], rows[s][v], x, 0));
      }
    }
  }
};

// The weights of a nibble's quad, nibbles 0 to 15, four lanes each: those of kS34Table less 1.
struct Weights {
  alignas(32) std::int8_t lanes[64];
};
constexpr Weights kWeights = [] {
  Weights w{};
  for (int n = 0; n < 16; ++n) {
    // Sums of dwords are packed in this order: nibbles 0-3 and 8-11, then 4-7 and 12-15.
    const int place = n / 4 == 1 ? n + 4 : n / 4 == 2 ? n - 4 : n;
    for (int p = 0; p < 4; ++p) {
      w.lanes[4 * place + p] = static_cast<std::int8_t>((kS34Table.codes[n] >> (2 * p) & 3) - 1);
    }
  }
  return w;
}();

}  // namespace

void s34_tables(const std::int8_t* q, std::size_t count, bool stride16,
                std::int8_t* tables) noexcept {
  const auto* weights = reinterpret_cast<const __m256i*>(kWeights.lanes);
  const __m256i low = _mm256_load_si256(weights);
  const __m256i high = _mm256_load_si256(weights + 1);
  const __m256i ones = _mm256_set1_epi16(1);
  // vpmaddubsw wants one side unsigned: q + 128, whose surplus is 128 times the weights' sum.
  const auto sums = [&](__m256i x) {
    return _mm256_packs_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(x, low), ones),
                              _mm256_madd_epi16(_mm256_maddubs_epi16(x, high), ones));
  };
  const __m256i surplus = sums(_mm256_set1_epi8(static_cast<char>(128)));
  for (std::size_t quad = 0; quad < count / 4; ++quad, tables += kTable) {
    std::uint32_t four = 0;
    const std::int8_t* at = stride16 ? q + quad / 16 * 64 + quad % 16 : q + 4 * quad;
    for (std::size_t p = 0; p < 4; ++p) {
      four |= std::uint32_t{static_cast<std::uint8_t>(at[stride16 ? 16 * p : p])} << (8 * p);
    }
    const __m256i x = _mm256_set1_epi32(static_cast<std::int32_t>(four ^ 0x80808080U));
    const __m256i t = _mm256_sub_epi16(sums(x), surplus);
    // t / 31 to the nearest: 32768 / 31 is 1057.03, and no t is near the middle of two.
    const __m256i h = _mm256_mulhrs_epi16(t, _mm256_set1_epi16(1057));
    const __m256i l = _mm256_sub_epi16(t, _mm256_mullo_epi16(h, _mm256_set1_epi16(31)));
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(l, h), 0xD8);
    _mm256_store_si256(reinterpret_cast<__m256i*>(tables), both);
  }
}

void s34_lut_gemv(const TernaryMatrix& w, RowRange rows, const Q8Matrix& x, Outputs y) noexcept {
  ternary_gemv<S34Lut>(w, rows, x, y);
}

}  // namespace tsq::kernels::avx2
