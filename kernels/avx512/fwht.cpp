// The Walsh-Hadamard transform and the rotations made of it.
//
// Trick: the stages h = 1 to 8 stay in one vector, where a lane's partner comes by a shuffle:
// y = shuffle(v) + v * (+1 or -1). Later stages pair vectors, three of them at a time where eight
// vectors 128 floats apart or closer are loaded once.
// Order: stages ascend, so every sum is the reference's.
// Registers, of 32: data 8, signs of the first stages 4.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {
namespace {

// v * (+1 in lanes whose bit h is clear, -1 else) + the partner's value.
template <int h>
__m512 stage(__m512 v) {
  constexpr std::uint16_t kUpper[] = {0, 0xAAAA, 0xCCCC, 0, 0xF0F0, 0, 0, 0, 0xFF00};
  const __m512 ones = _mm512_mask_blend_ps(kUpper[h], _mm512_set1_ps(1.0F), _mm512_set1_ps(-1.0F));
  __m512 partner;
  if constexpr (h == 1) partner = _mm512_permute_ps(v, 0xB1);
  if constexpr (h == 2) partner = _mm512_permute_ps(v, 0x4E);
  if constexpr (h == 4) partner = _mm512_shuffle_f32x4(v, v, 0xB1);
  if constexpr (h == 8) partner = _mm512_shuffle_f32x4(v, v, 0x4E);
  return _mm512_fmadd_ps(v, ones, partner);
}

// The stages below 16 of a transform of n.
__m512 inner(__m512 v, std::size_t n) {
  if (n > 1) v = stage<1>(v);
  if (n > 2) v = stage<2>(v);
  if (n > 4) v = stage<4>(v);
  if (n > 8) v = stage<8>(v);
  return v;
}

// kStages stages, h and its doubles, on 2^kStages vectors that lie h floats apart.
template <int kStages>
void butterfly(float* x, std::size_t h) {
  constexpr int kVectors = 1 << kStages;
  __m512 v[kVectors];
  for (int i = 0; i < kVectors; ++i) v[i] = _mm512_loadu_ps(x + i * h);
  for (int step = 1; step < kVectors; step *= 2) {
    for (int i = 0; i < kVectors; ++i) {
      if ((i & step) != 0) continue;
      const __m512 a = v[i];
      const __m512 b = v[i + step];
      v[i] = _mm512_add_ps(a, b);
      v[i + step] = _mm512_sub_ps(a, b);
    }
  }
  for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(x + i * h, v[i]);
}

template <int kStages>
void outer(float* x, std::size_t count, std::size_t h) {
  const std::size_t span = h << kStages;
  for (std::size_t start = 0; start < count; start += span) {
    for (std::size_t i = start; i < start + h; i += kWidth) butterfly<kStages>(x + i, h);
  }
}

void outer_stages(float* x, std::size_t count, std::size_t n) {
  std::size_t h = kWidth;
  for (; 8 * h <= n; h *= 8) outer<3>(x, count, h);
  if (4 * h <= n) {
    outer<2>(x, count, h);
  } else if (2 * h <= n) {
    outer<1>(x, count, h);
  }
}

// Flips the lanes from element i on whose sign bit is set; i is a multiple of 16.
__m512 flip(__m512 v, const std::uint32_t* signs, std::size_t i) {
  const auto bits = static_cast<__mmask16>(signs[i / 32] >> (i % 32));
  return _mm512_mask_xor_ps(v, bits, v, _mm512_set1_ps(-0.0F));
}

float norm(std::size_t block) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(block)));
}

}  // namespace

void fwht(float* x, std::size_t count, std::size_t n) noexcept {
  for (std::size_t i = 0; i < count; i += kWidth) {
    const __mmask16 m = first_lanes(count - i);
    _mm512_mask_storeu_ps(x + i, m, inner(_mm512_maskz_loadu_ps(m, x + i), n));
  }
  outer_stages(x, count, n);
}

void rotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
            float* y) noexcept {
  for (std::size_t i = 0; i < count; i += kWidth) {
    const __mmask16 m = first_lanes(count - i);
    __m512 v = _mm512_maskz_loadu_ps(m, x + i);
    if (signs != nullptr) v = flip(v, signs, i);
    _mm512_mask_storeu_ps(y + i, m, inner(v, block));
  }
  outer_stages(y, count, block);
  const __m512 scale = _mm512_set1_ps(norm(block));
  for (std::size_t i = 0; i < count; i += kWidth) {
    const __mmask16 m = first_lanes(count - i);
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, y + i), scale));
  }
}

void unrotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
              float* y) noexcept {
  for (std::size_t i = 0; i < count; i += kWidth) {
    const __mmask16 m = first_lanes(count - i);
    _mm512_mask_storeu_ps(y + i, m, inner(_mm512_maskz_loadu_ps(m, x + i), block));
  }
  outer_stages(y, count, block);
  const __m512 scale = _mm512_set1_ps(norm(block));
  for (std::size_t i = 0; i < count; i += kWidth) {
    const __mmask16 m = first_lanes(count - i);
    __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, y + i), scale);
    if (signs != nullptr) v = flip(v, signs, i);
    _mm512_mask_storeu_ps(y + i, m, v);
  }
}

}  // namespace tsq::kernels::avx512
