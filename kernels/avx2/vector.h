// The names that the kernels of kernels/x86/ use, for vectors of 256 bits.
#pragma once

#include "kernels/avx2/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

using Ints = __m256i;
using Floats = __m256;
using Lanes = __m256i;  // a mask

constexpr std::size_t kVectorBytes = 32;
constexpr int kVectors = kRowBlock / kWidth;  // of one dword of a row block
constexpr int kTileColumns = static_cast<int>(avx2::kTileColumns);
constexpr int kPlaneSums = 2;  // of planes.h

inline void fetch(const void* from) { _mm_prefetch(from, _MM_HINT_T0); }
inline Ints load_aligned(const std::uint8_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store_aligned(std::uint8_t* to, Ints v) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), v);
}
inline Ints set_ints(std::int32_t v) { return _mm256_set1_epi32(v); }
inline Ints set_bytes(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
inline Ints bits_and(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints add_ints(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints sub_ints(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints add_bytes(Ints a, Ints b) { return _mm256_add_epi8(a, b); }
template <int n>
inline Ints shift_right_ints(Ints v) {
  return _mm256_srai_epi32(v, n);
}
template <int n>
inline Ints shift_right_shorts(Ints v) {
  return _mm256_srli_epi16(v, n);
}
inline Floats zeros() { return _mm256_setzero_ps(); }
inline Floats set_floats(float v) { return _mm256_set1_ps(v); }
inline Floats load_floats(const float* from) { return _mm256_loadu_ps(from); }
inline void store_floats(float* to, Floats v) { _mm256_storeu_ps(to, v); }
inline Floats load_floats(const float* from, Lanes lanes) {
  return _mm256_maskload_ps(from, lanes);
}
inline void store_floats(float* to, Lanes lanes, Floats v) { _mm256_maskstore_ps(to, lanes, v); }
inline Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
inline Floats as_floats(Ints v) { return _mm256_castsi256_ps(v); }
inline Ints as_ints(Floats v) { return _mm256_castps_si256(v); }
inline Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

// The weights of four or more codes, by each lane's low bits.
inline Floats weights_of(Ints codes) {
  const Floats table = _mm256_setr_ps(-1.0F, 0.0F, 1.0F, 2.0F, 0.0F, 0.0F, 0.0F, 0.0F);
  return _mm256_permutevar8x32_ps(table, codes);
}
inline Ints next_byte(Ints v) { return _mm256_srli_epi32(v, 8); }

}  // namespace
}  // namespace tsq::kernels
