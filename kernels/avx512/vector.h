// The names that the kernels of kernels/x86/ use, for vectors of 512 bits.
#pragma once

#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels {
namespace {

using Ints = __m512i;
using Floats = __m512;
using Lanes = __mmask16;

constexpr std::size_t kVectorBytes = 64;
constexpr int kVectors = kRowBlock / kWidth;  // of one dword of a row block
constexpr int kTileColumns = static_cast<int>(avx512::kTileColumns);
constexpr int kPlaneSums = 4;  // of planes.h

inline void fetch(const void* from) { _mm_prefetch(from, _MM_HINT_T0); }
inline Ints load_aligned(const std::uint8_t* from) { return _mm512_load_si512(from); }
inline void store_aligned(std::uint8_t* to, Ints v) { _mm512_store_si512(to, v); }
inline Ints set_ints(std::int32_t v) { return _mm512_set1_epi32(v); }
inline Ints set_bytes(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
inline Ints bits_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
inline Ints add_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints sub_ints(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints add_bytes(Ints a, Ints b) { return _mm512_add_epi8(a, b); }
template <int n>
inline Ints shift_right_ints(Ints v) {
  return _mm512_srai_epi32(v, n);
}
template <int n>
inline Ints shift_right_shorts(Ints v) {
  return _mm512_srli_epi16(v, n);
}
inline Floats zeros() { return _mm512_setzero_ps(); }
inline Floats set_floats(float v) { return _mm512_set1_ps(v); }
inline Floats load_floats(const float* from) { return _mm512_loadu_ps(from); }
inline void store_floats(float* to, Floats v) { _mm512_storeu_ps(to, v); }
inline Floats load_floats(const float* from, Lanes lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline void store_floats(float* to, Lanes lanes, Floats v) { _mm512_mask_storeu_ps(to, lanes, v); }
inline Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
inline Floats as_floats(Ints v) { return _mm512_castsi512_ps(v); }
inline Ints as_ints(Floats v) { return _mm512_castps_si512(v); }
inline Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

// The weights of codes, by each lane's low bits.
inline Floats weights_of(Ints codes) {
  return _mm512_permutexvar_ps(codes, _mm512_castps128_ps512(_mm_setr_ps(-1.0F, 0.0F, 1.0F, 2.0F)));
}
inline Ints next_byte(Ints v) { return _mm512_srli_epi32(v, 8); }

}  // namespace
}  // namespace tsq::kernels
