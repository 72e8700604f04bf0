// How a weight's scales are read and how dots become sums, 8 rows a vector.
#pragma once

#include "kernels/avx2/simd.h"

namespace tsq::kernels {
namespace {

constexpr int kQuarters = kRowBlock / kWidth;  // vectors of a row block

// How a part's exact dot joins the sum of its row: by an fma ...
struct Chain {
  using Vector = __m256;
  static Vector from_y(__m256 y) { return y; }
  static __m256 to_y(Vector sum) { return sum; }
  static Vector join(Vector sum, __m256i dot, __m256 w_scale, __m256 x_scale) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(w_scale, x_scale), sum);
  }
  static __m256 total(Vector sum, __m256, const Q8Matrix&, std::size_t) { return sum; }
};
// ... or as an int32, scaled at the end.
struct WholeRow {
  using Vector = __m256i;
  static Vector from_y(__m256 y) { return _mm256_castps_si256(y); }
  static __m256 to_y(Vector sum) { return _mm256_castsi256_ps(sum); }
  static Vector join(Vector sum, __m256i dot, __m256, __m256) { return _mm256_add_epi32(sum, dot); }
  static __m256 total(Vector sum, __m256 w_scale, const Q8Matrix& x, std::size_t column) {
    const __m256 scale = _mm256_div_ps(w_scale, _mm256_set1_ps(x.token_scale[column]));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
  }
};

// Where the weight scales lie: in lines of each group in the body, or in an array beside it.
template <std::size_t lines, class SumOf = Chain>
struct Scales {
  static constexpr std::size_t kLines = lines;
  static constexpr std::size_t kLineBytes = lines * kScaleLine;
  static constexpr std::size_t kParts = lines == 2 ? 2 : 1;
  using Sum = SumOf;

  // Those in the array, of rows 8 v to 8 v + 7 of a block.
  static __m256 of_rows(const TernaryMatrix& w, std::size_t block, int v) {
    if constexpr (lines != 0) return _mm256_setzero_ps();
    if (w.scale_kind == ScaleKind::per_tensor) return _mm256_set1_ps(w.scales[0]);
    return _mm256_loadu_ps(w.scales + block * kRowBlock + v * kWidth);
  }
  // Those of a part, whose line is `line` if there are lines.
  static __m256 of_part(const std::uint8_t* line, int v, __m256 rows) {
    if constexpr (lines != 0) return load_half(line + 16 * v);
    return rows;
  }
  // Those of the parts of a group, whose first line is `line`.
  static void decode(const TernaryMatrix& w, std::size_t block, const std::uint8_t* line,
                     float (*parts)[kRowBlock]) {
    for (std::size_t part = 0; part < kParts; ++part) {
      for (int v = 0; v < kQuarters; ++v) {
        const __m256 scales = of_part(line + part * kScaleLine, v, of_rows(w, block, v));
        _mm256_store_ps(parts[part] + v * kWidth, scales);
      }
    }
  }
};

}  // namespace
}  // namespace tsq::kernels
