// The Walsh-Hadamard transform and the rotations made of it.
//
// Trick: the stages h = 1 to 4 stay in one vector, where a lane's partner comes by a shuffle:
// y = shuffle(v) + v * (+1 or -1). Later stages pair vectors, three stages for each load of eight.
// Order: stages ascend, so every sum is the reference's.
// Registers, of 16: data 8, temporaries 2.
#include "kernels/avx2/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx2 {
namespace {

// The stages below 8 of a transform of n.
__m256 inner(__m256 v, std::size_t n) {
  if (n > 1) {
    const __m256 ones = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute_ps(v, 0xB1));
  }
  if (n > 2) {
    const __m256 ones = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute_ps(v, 0x4E));
  }
  if (n > 4) {
    const __m256 ones = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    v = _mm256_fmadd_ps(v, ones, _mm256_permute2f128_ps(v, v, 1));
  }
  return v;
}

// kStages stages, h and its doubles, on 2^kStages vectors that lie h floats apart.
template <int kStages>
void butterfly(float* x, std::size_t h) {
  constexpr int kVectors = 1 << kStages;
  __m256 v[kVectors];
  for (int i = 0; i < kVectors; ++i) v[i] = _mm256_loadu_ps(x + i * h);
  for (int step = 1; step < kVectors; step *= 2) {
    for (int i = 0; i < kVectors; ++i) {
      if ((i & step) != 0) continue;
      const __m256 a = v[i];
      const __m256 b = v[i + step];
      v[i] = _mm256_add_ps(a, b);
      v[i + step] = _mm256_sub_ps(a, b);
    }
  }
  for (int i = 0; i < kVectors; ++i) _mm256_storeu_ps(x + i * h, v[i]);
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

// Flips the lanes from element i on whose sign bit is set; i is a multiple of 8.
__m256 flip(__m256 v, const std::uint32_t* signs, std::size_t i) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i bits = _mm256_set1_epi32(static_cast<int>(signs[i / 32] >> (i % 32)));
  const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(bits, bit), bit);
  return _mm256_xor_ps(v, _mm256_and_ps(_mm256_castsi256_ps(set), _mm256_set1_ps(-0.0F)));
}

// y = f(x, i) for every vector, i its first element.
template <class F>
void map(const float* x, std::size_t count, float* y, F f) {
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) _mm256_storeu_ps(y + i, f(_mm256_loadu_ps(x + i), i));
  if (i < count) {
    const __m256i m = first_lanes(count - i);
    _mm256_maskstore_ps(y + i, m, f(_mm256_maskload_ps(x + i, m), i));
  }
}

__m256 norm(std::size_t block) {
  return _mm256_set1_ps(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(block))));
}

}  // namespace

void fwht(float* x, std::size_t count, std::size_t n) noexcept {
  map(x, count, x, [n](__m256 v, std::size_t) { return inner(v, n); });
  outer_stages(x, count, n);
}

void rotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
            float* y) noexcept {
  map(x, count, y, [=](__m256 v, std::size_t i) {
    return inner(signs != nullptr ? flip(v, signs, i) : v, block);
  });
  outer_stages(y, count, block);
  const __m256 scale = norm(block);
  map(y, count, y, [scale](__m256 v, std::size_t) { return _mm256_mul_ps(v, scale); });
}

void unrotate(const float* x, const std::uint32_t* signs, std::size_t count, std::size_t block,
              float* y) noexcept {
  map(x, count, y, [block](__m256 v, std::size_t) { return inner(v, block); });
  outer_stages(y, count, block);
  const __m256 scale = norm(block);
  map(y, count, y, [=](__m256 v, std::size_t i) {
    v = _mm256_mul_ps(v, scale);
    return signs != nullptr ? flip(v, signs, i) : v;
  });
}

}  // namespace tsq::kernels::avx2
