// Dense rows: R rows by C columns at a time; the 16 lanes of a sum are the lanes of a vector.
//
// Layout: kernels.h has the blocks; a block of 32 inputs is two vectors, and the second follows the
// first in the same sum.
// Order: one fma per 16 inputs, ascending, then the fixed tree.
// Registers for R = 4, C = 4, of 32: sums 16, weights 8, x 2.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {
namespace {

constexpr std::size_t kBlock = 32;

struct Pair {
  __m512 v[2];
};

__m128i load16(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
__m512 half(const std::uint8_t* from) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
__m512 bf16(const std::uint8_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
__m512 from_s8(__m128i codes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)); }

// The 32 values of block b of a row.
template <DenseType kType>
Pair values(const std::uint8_t* row, std::size_t b) {
  if constexpr (kType == DenseType::f32) {
    const std::uint8_t* at = row + b * kBlock * 4;
    return {{_mm512_loadu_ps(at), _mm512_loadu_ps(at + 64)}};
  } else if constexpr (kType == DenseType::f16) {
    const std::uint8_t* at = row + b * kBlock * 2;
    return {{load_half(at), load_half(at + 32)}};
  } else if constexpr (kType == DenseType::bf16) {
    const std::uint8_t* at = row + b * kBlock * 2;
    return {{bf16(at), bf16(at + 32)}};
  } else if constexpr (kType == DenseType::q8) {
    const std::uint8_t* at = row + b * (2 + kBlock);
    const __m512 d = half(at);
    return {
        {_mm512_mul_ps(from_s8(load16(at + 2)), d), _mm512_mul_ps(from_s8(load16(at + 18)), d)}};
  } else {
    constexpr bool kMin = kType == DenseType::q4m;
    constexpr std::size_t kHeader = kMin ? 4 : 2;
    const std::uint8_t* at = row + b * (kHeader + kBlock / 2);
    const __m512 d = half(at);
    const __m128i pairs = load16(at + kHeader);
    const __m128i low4 = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(pairs, low4);
    __m128i high = _mm_and_si128(_mm_srli_epi16(pairs, 4), low4);
    if constexpr (kMin) {
      const __m512 m = half(at + 2);
      return {{_mm512_add_ps(_mm512_mul_ps(from_s8(low), d), m),
               _mm512_add_ps(_mm512_mul_ps(from_s8(high), d), m)}};
    } else {
      low = _mm_sub_epi8(low, _mm_set1_epi8(8));
      high = _mm_sub_epi8(high, _mm_set1_epi8(8));
      return {{_mm512_mul_ps(from_s8(low), d), _mm512_mul_ps(from_s8(high), d)}};
    }
  }
}

template <DenseType kType, int R, int C>
void tile(const DenseMatrix& w, std::size_t row, const F32Matrix& x, std::size_t column,
          Outputs y) {
  const std::uint8_t* data = reinterpret_cast<const std::uint8_t*>(w.data) + row * w.row_bytes;
  const float* in = x.data + column * x.stride;
  __m512 sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = _mm512_setzero_ps();
  }
  for (std::size_t b = 0; b < w.cols / kBlock; ++b) {
    Pair weights[R];
    for (int r = 0; r < R; ++r) weights[r] = values<kType>(data + r * w.row_bytes, b);
    for (int c = 0; c < C; ++c) {
      for (int i = 0; i < 2; ++i) {
        const __m512 xs = _mm512_loadu_ps(in + c * x.stride + b * kBlock + i * kWidth);
        for (int r = 0; r < R; ++r) sum[r][c] = _mm512_fmadd_ps(weights[r].v[i], xs, sum[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      y.data[(column + c) * y.stride + row + r] = reduce_lanes(sum[r][c]);
    }
  }
}

template <DenseType kType, int R>
void all_columns(const DenseMatrix& w, std::size_t row, const F32Matrix& x, Outputs y) {
  std::size_t c = 0;
  for (; c + 4 <= x.n; c += 4) tile<kType, R, 4>(w, row, x, c, y);
  for (; c + 2 <= x.n; c += 2) tile<kType, R, 2>(w, row, x, c, y);
  for (; c < x.n; ++c) tile<kType, R, 1>(w, row, x, c, y);
}

template <DenseType kType>
void gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  std::size_t row = rows.first;
  for (; row + 4 <= rows.last; row += 4) all_columns<kType, 4>(w, row, x, y);
  for (; row < rows.last; ++row) all_columns<kType, 1>(w, row, x, y);
}

}  // namespace

void dense_gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) noexcept {
  switch (w.type) {
    case DenseType::f32:
      return gemm<DenseType::f32>(w, rows, x, y);
    case DenseType::f16:
      return gemm<DenseType::f16>(w, rows, x, y);
    case DenseType::bf16:
      return gemm<DenseType::bf16>(w, rows, x, y);
    case DenseType::q8:
      return gemm<DenseType::q8>(w, rows, x, y);
    case DenseType::q4:
      return gemm<DenseType::q4>(w, rows, x, y);
    case DenseType::q4m:
      return gemm<DenseType::q4m>(w, rows, x, y);
  }
}

}  // namespace tsq::kernels::avx512
