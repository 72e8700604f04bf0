// Dense rows: R rows by C columns at a time; the 16 lanes of a sum are two vectors.
//
// Layout: kernels.h has the blocks of 32 inputs; their halves are taken one after the other.
// Order: one fma per 16 inputs, ascending, then the fixed tree.
// Registers for R = 2, C = 2, of 16: sums 8, weights 4, x 1, decoding 3.
#include "kernels/avx2/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx2 {
namespace {

constexpr std::size_t kBlock = 32;

struct Sixteen {
  __m256 v[2];
};

__m128i load16(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
__m256 half(const std::uint8_t* from) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
__m256 bf16(const std::uint8_t* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(from)), 16));
}
Sixteen scaled(__m128i codes, __m256 d) {
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)));
  return {{_mm256_mul_ps(low, d), _mm256_mul_ps(high, d)}};
}

// Values 16 h to 16 h + 15 of block b of a row.
template <DenseType kType>
Sixteen values(const std::uint8_t* row, std::size_t b, std::size_t h) {
  if constexpr (kType == DenseType::f32) {
    const std::uint8_t* at = row + b * kBlock * 4 + h * 64;
    return {{_mm256_castsi256_ps(load(at)), _mm256_castsi256_ps(load(at + 32))}};
  } else if constexpr (kType == DenseType::f16) {
    const std::uint8_t* at = row + b * kBlock * 2 + h * 32;
    return {{load_half(at), load_half(at + 16)}};
  } else if constexpr (kType == DenseType::bf16) {
    const std::uint8_t* at = row + b * kBlock * 2 + h * 32;
    return {{bf16(at), bf16(at + 16)}};
  } else if constexpr (kType == DenseType::q8) {
    const std::uint8_t* at = row + b * (2 + kBlock);
    return scaled(load16(at + 2 + 16 * h), half(at));
  } else {
    constexpr bool kMin = kType == DenseType::q4m;
    constexpr std::size_t kHeader = kMin ? 4 : 2;
    const std::uint8_t* at = row + b * (kHeader + kBlock / 2);
    const __m128i pairs = load16(at + kHeader);
    const __m128i nibbles =
        _mm_and_si128(h == 0 ? pairs : _mm_srli_epi16(pairs, 4), _mm_set1_epi8(15));
    if constexpr (kMin) {
      Sixteen s = scaled(nibbles, half(at));
      const __m256 m = half(at + 2);
      for (__m256& v : s.v) v = _mm256_add_ps(v, m);
      return s;
    } else {
      return scaled(_mm_sub_epi8(nibbles, _mm_set1_epi8(8)), half(at));
    }
  }
}

template <DenseType kType, int R, int C>
void tile(const DenseMatrix& w, std::size_t row, const F32Matrix& x, std::size_t column,
          Outputs y) {
  const std::uint8_t* data = reinterpret_cast<const std::uint8_t*>(w.data) + row * w.row_bytes;
  const float* in = x.data + column * x.stride;
  __m256 sum[R][C][2];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c][0] = sum[r][c][1] = _mm256_setzero_ps();
  }
  for (std::size_t b = 0; b < w.cols / kBlock; ++b) {
    for (std::size_t h = 0; h < 2; ++h) {
      Sixteen weights[R];
      for (int r = 0; r < R; ++r) weights[r] = values<kType>(data + r * w.row_bytes, b, h);
      for (int c = 0; c < C; ++c) {
        for (int i = 0; i < 2; ++i) {
          const __m256 xs =
              _mm256_loadu_ps(in + c * x.stride + b * kBlock + h * kLanes + i * kWidth);
          for (int r = 0; r < R; ++r) {
            sum[r][c][i] = _mm256_fmadd_ps(weights[r].v[i], xs, sum[r][c][i]);
          }
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      y.data[(column + c) * y.stride + row + r] = reduce_lanes(sum[r][c][0], sum[r][c][1]);
    }
  }
}

template <DenseType kType, int R>
void all_columns(const DenseMatrix& w, std::size_t row, const F32Matrix& x, Outputs y) {
  std::size_t c = 0;
  for (; c + 2 <= x.n; c += 2) tile<kType, R, 2>(w, row, x, c, y);
  for (; c < x.n; ++c) tile<kType, R, 1>(w, row, x, c, y);
}

template <DenseType kType>
void gemm(const DenseMatrix& w, RowRange rows, const F32Matrix& x, Outputs y) {
  std::size_t row = rows.first;
  for (; row + 2 <= rows.last; row += 2) all_columns<kType, 2>(w, row, x, y);
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

}  // namespace tsq::kernels::avx2
