// One query head against a key/value cache.
//
// Trick: a block of 64 positions at a time. Scores of four positions share the loads of the query;
// the values then pass once for every slice of the head, whose sums stay in registers.
// Order: a score is one 16-lane sum; an output element one chain of fmas, positions ascending, as
// is the sum of the weights.
// Registers, of 32: scores 4, query 1, keys 4; then sums 8, weight 1, values 8.
#include "kernels/avx512/simd.h"
#include "kernels/isa.h"

namespace tsq::kernels::avx512 {
namespace {

__m512 load_floats(const float* from) { return _mm512_loadu_ps(from); }
__m512 load_floats(const std::uint16_t* from) {
  return load_half(reinterpret_cast<const std::uint8_t*>(from));
}

template <int P, class T>
void scores(const AttentionHead& head, std::size_t position, float* out) {
  const T* keys = static_cast<const T*>(head.keys) + position * head.stride;
  __m512 sum[P];
  for (int p = 0; p < P; ++p) sum[p] = _mm512_setzero_ps();
  for (std::size_t d = 0; d < head.head_dim; d += kWidth) {
    const __m512 q = _mm512_loadu_ps(head.q + d);
    for (int p = 0; p < P; ++p) {
      sum[p] = _mm512_fmadd_ps(q, load_floats(keys + p * head.stride + d), sum[p]);
    }
  }
  for (int p = 0; p < P; ++p) out[p] = reduce_lanes(sum[p]) * head.scale;
}

// out = shrink * out + the weighted values, for V vectors of the head from element d on.
template <int V, class T>
void add_values(const AttentionHead& head, std::size_t first, std::size_t n, const float* weights,
                float shrink, std::size_t d) {
  const T* values = static_cast<const T*>(head.values) + first * head.stride + d;
  float* out = head.out + d;
  __m512 acc[V];
  for (int v = 0; v < V; ++v) {
    acc[v] = _mm512_mul_ps(_mm512_loadu_ps(out + v * kWidth), _mm512_set1_ps(shrink));
  }
  for (std::size_t p = 0; p < n; ++p, values += head.stride) {
    const __m512 weight = _mm512_set1_ps(weights[p]);
    for (int v = 0; v < V; ++v) {
      acc[v] = _mm512_fmadd_ps(weight, load_floats(values + v * kWidth), acc[v]);
    }
  }
  for (int v = 0; v < V; ++v) _mm512_storeu_ps(out + v * kWidth, acc[v]);
}

template <class T>
void attention(const AttentionHead& head) {
  float max = -__builtin_inff();
  float sum = 0.0F;
  for (std::size_t d = 0; d < head.head_dim; d += kWidth) {
    _mm512_storeu_ps(head.out + d, _mm512_setzero_ps());
  }
  for (std::size_t first = 0; first < head.length; first += kSoftmaxBlock) {
    const std::size_t n = min_size(kSoftmaxBlock, head.length - first);
    alignas(64) float weights[kSoftmaxBlock] = {};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) scores<4, T>(head, first + i, weights + i);
    for (; i < n; ++i) scores<1, T>(head, first + i, weights + i);
    float new_max = max;
    for (i = 0; i < n; ++i) new_max = weights[i] > new_max ? weights[i] : new_max;

    const float shrink = _mm512_cvtss_f32(exp_f32(_mm512_set1_ps(max - new_max)));
    max = new_max;
    for (i = 0; i < n; i += kWidth) {
      const __m512 score = _mm512_load_ps(weights + i);
      _mm512_store_ps(weights + i, exp_f32(_mm512_sub_ps(score, _mm512_set1_ps(max))));
    }
    sum *= shrink;
    for (i = 0; i < n; ++i) sum += weights[i];

    std::size_t d = 0;
    for (; d + 8 * kWidth <= head.head_dim; d += 8 * kWidth) {
      add_values<8, T>(head, first, n, weights, shrink, d);
    }
    for (; d + 4 * kWidth <= head.head_dim; d += 4 * kWidth) {
      add_values<4, T>(head, first, n, weights, shrink, d);
    }
    for (; d < head.head_dim; d += kWidth) {
      add_values<1, T>(head, first, n, weights, shrink, d);
    }
  }
  for (std::size_t d = 0; d < head.head_dim; d += kWidth) {
    float* out = head.out + d;
    _mm512_storeu_ps(out, _mm512_div_ps(_mm512_loadu_ps(out), _mm512_set1_ps(sum)));
  }
}

}  // namespace

void attention_f16(const AttentionHead& head) noexcept { attention<std::uint16_t>(head); }
void attention_f32(const AttentionHead& head) noexcept { attention<float>(head); }

}  // namespace tsq::kernels::avx512
