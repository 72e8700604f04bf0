// Query heads against a key/value cache, the reference: one by one. The output is the accumulator.
#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "kernels/scalar/math.h"

namespace tsq::kernels::scalar {
namespace {

float to_float(float x) { return x; }
float to_float(std::uint16_t x) { return f16_to_f32(x); }

// One query head and what it sees.
struct Head {
  const float* q;
  const void* keys;
  const void* values;
  std::size_t stride;
  std::size_t length;
  std::size_t head_dim;
  float scale;
  float* out;
};

template <class T>
float score(const Head& head, std::size_t position) {
  const T* key = static_cast<const T*>(head.keys) + position * head.stride;
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < head.head_dim; ++i) {
    lanes[i % kLanes] = std::fma(head.q[i], to_float(key[i]), lanes[i % kLanes]);
  }
  return reduce_lanes(lanes) * head.scale;
}

template <class T>
void attention(const Head& head) {
  const T* values = static_cast<const T*>(head.values);
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;
  for (std::size_t d = 0; d < head.head_dim; ++d) head.out[d] = 0.0F;
  for (std::size_t first = 0; first < head.length; first += kSoftmaxBlock) {
    const std::size_t n = std::min(kSoftmaxBlock, head.length - first);
    float scores[kSoftmaxBlock];
    float new_max = max;
    for (std::size_t i = 0; i < n; ++i) {
      scores[i] = score<T>(head, first + i);
      if (scores[i] > new_max) new_max = scores[i];
    }
    const float shrink = exp_f32(max - new_max);
    max = new_max;
    sum *= shrink;
    for (std::size_t d = 0; d < head.head_dim; ++d) head.out[d] *= shrink;
    for (std::size_t i = 0; i < n; ++i) {
      const float p = exp_f32(scores[i] - max);
      sum += p;
      const T* value = values + (first + i) * head.stride;
      for (std::size_t d = 0; d < head.head_dim; ++d) {
        head.out[d] = std::fma(p, to_float(value[d]), head.out[d]);
      }
    }
  }
  for (std::size_t d = 0; d < head.head_dim; ++d) head.out[d] /= sum;
}

template <class T>
void attention(const AttentionTile& tile) {
  for (std::size_t t = 0; t < tile.n_tokens; ++t) {
    for (std::size_t h = 0; h < tile.n_heads; ++h) {
      attention<T>(Head{tile.q + t * tile.q_stride + h * tile.head_dim, tile.keys, tile.values,
                        tile.stride, tile.length + t, tile.head_dim, tile.scale,
                        tile.out + t * tile.out_stride + h * tile.head_dim});
    }
  }
}

}  // namespace

void attention_f16(const AttentionTile& tile) noexcept { attention<std::uint16_t>(tile); }
void attention_f32(const AttentionTile& tile) noexcept { attention<float>(tile); }

}  // namespace tsq::kernels::scalar
