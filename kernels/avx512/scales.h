// How a weight's scales are read and how dots become sums, 16 rows a vector.
#pragma once

#include "kernels/avx512/simd.h"

namespace tsq::kernels {
namespace {

// How a part's exact dot joins the sum of its row: by an fma ...
struct Chain {
  using Vector = __m512;
  static Vector from_y(__m512 y) { return y; }
  static __m512 to_y(Vector sum) { return sum; }
  static Vector join(Vector sum, __m512i dot, __m512 w_scale, __m512 x_scale) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_mul_ps(w_scale, x_scale), sum);
  }
  static __m512 total(Vector sum, __m512, const Q8Matrix&, std::size_t) { return sum; }
};
// ... or as an int32, scaled at the end.
struct WholeRow {
  using Vector = __m512i;
  static Vector from_y(__m512 y) { return _mm512_castps_si512(y); }
  static __m512 to_y(Vector sum) { return _mm512_castsi512_ps(sum); }
  static Vector join(Vector sum, __m512i dot, __m512, __m512) { return _mm512_add_epi32(sum, dot); }
  static __m512 total(Vector sum, __m512 w_scale, const Q8Matrix& x, std::size_t column) {
    const __m512 scale = _mm512_div_ps(w_scale, _mm512_set1_ps(x.token_scale[column]));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  }
};

// Where the weight scales lie: in lines of each group in the body, or in an array beside it.
template <std::size_t lines, class SumOf = Chain>
struct Scales {
  static constexpr std::size_t kLines = lines;
  static constexpr std::size_t kLineBytes = lines * kScaleLine;
  static constexpr std::size_t kParts = lines == 2 ? 2 : 1;
  using Sum = SumOf;

  // Those in the array, of rows 16 h to 16 h + 15 of a block.
  static __m512 of_rows(const TernaryMatrix& w, std::size_t block, int h) {
    if constexpr (lines != 0) return _mm512_setzero_ps();
    if (w.scale_kind == ScaleKind::per_tensor) return _mm512_set1_ps(w.scales[0]);
    return _mm512_loadu_ps(w.scales + block * kRowBlock + h * kWidth);
  }
  // Those of a part, whose line is `line` if there are lines.
  static __m512 of_part(const std::uint8_t* line, int h, __m512 rows) {
    if constexpr (lines != 0) return load_half(line + 32 * h);
    return rows;
  }
  // Those of the parts of a group, whose first line is `line`.
  static void decode(const TernaryMatrix& w, std::size_t block, const std::uint8_t* line,
                     float (*parts)[kRowBlock]) {
    for (std::size_t part = 0; part < kParts; ++part) {
      for (int h = 0; h < 2; ++h) {
        const __m512 scales = of_part(line + part * kScaleLine, h, of_rows(w, block, h));
        _mm512_store_ps(parts[part] + h * kWidth, scales);
      }
    }
  }
};

}  // namespace
}  // namespace tsq::kernels
