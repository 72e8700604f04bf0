// Query heads against a key/value cache at a level whose lanes.h and simd.h come first.
//
// Trick: a block of 64 positions stays in the cache while all query heads of the tile pass over it,
// up to kTileSums at a time, which share each load and conversion of a key or a value. A value's
// pass takes 16 inputs of every position at a time, so that the sums stay in registers; while the
// first heads read the keys of a block its values are asked for.
// Order: a score is one 16-lane sum, whose last two folds are done for eight positions at once; an
// output element is one chain of fmas, positions ascending, as is the sum of the weights.
#pragma once

namespace tsq::kernels {
namespace {

constexpr int kTogether = 6;  // query heads

struct Query {
  const float* q;
  float* out;
  std::size_t length;
  float max, sum;
};

// Consecutive queries of a tile and one block of positions.
template <class T>
struct Block {
  const T* keys;
  const T* values;
  std::size_t stride, head_dim;
  std::size_t first;  // position
  float scale;
  bool ask_values;  // whether nobody has read them yet
};

// What Q queries make of a block.
template <int Q>
struct Scores {
  std::size_t n[Q];  // positions that each sees, ascending
  float shrink[Q];
  alignas(64) float weights[Q][kSoftmaxBlock];
  alignas(64) float folds[Q][kSoftmaxBlock][4];  // of the scores, before the last two folds
};

// P positions from `at` on for Q queries.
template <int Q, int P, class T>
void dot_keys(const Block<T>& block, const Query* queries, std::size_t at,
              float (*const (&folds)[Q])[4]) {
  const T* keys = block.keys + at * block.stride;
  Lanes sum[Q][P];
  for (int q = 0; q < Q; ++q) {
    for (int p = 0; p < P; ++p) sum[q][p] = zero_lanes();
  }
  for (std::size_t d = 0; d < block.head_dim; d += kLanes) {
    if constexpr (P == 1) {
      const Lanes key = load_lanes(keys + d);
      for (int q = 0; q < Q; ++q) sum[q][0] = fma(load_lanes(queries[q].q + d), key, sum[q][0]);
    } else {
      Lanes x[Q];
      for (int q = 0; q < Q; ++q) x[q] = load_lanes(queries[q].q + d);
      for (int p = 0; p < P; ++p) {
        const Lanes key = load_lanes(keys + p * block.stride + d);
        for (int q = 0; q < Q; ++q) sum[q][p] = fma(x[q], key, sum[q][p]);
      }
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int p = 0; p < P; ++p) _mm_store_ps(folds[q][at + p], fold_lanes(sum[q][p]));
  }
}

// The last two folds, + 2 and + 1, of eight positions.
inline __m256 fold_eight(const float (*folds)[4]) {
  __m256 pairs[2];
  for (int i = 0; i < 2; ++i) {
    const __m256 a = _mm256_load_ps(folds[4 * i]), b = _mm256_load_ps(folds[4 * i + 2]);
    pairs[i] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
  }
  const __m256 sums = _mm256_add_ps(_mm256_shuffle_ps(pairs[0], pairs[1], 0x88),
                                    _mm256_shuffle_ps(pairs[0], pairs[1], 0xDD));
  // 0, 2, 4, 6 | 1, 3, 5, 7
  return _mm256_permutevar8x32_ps(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline float largest(__m256 x) {
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

// From a query's folded scores to its weights.
template <int Q>
void softmax(Query& query, Scores<Q>& scores, int q, float scale) {
  float* weights = scores.weights[q];
  const std::size_t n = scores.n[q];
  for (std::size_t p = 0; p < n; p += 8) {
    _mm256_store_ps(weights + p,
                    _mm256_mul_ps(fold_eight(scores.folds[q] + p), _mm256_set1_ps(scale)));
  }
  for (std::size_t p = n; p % kLanes != 0; ++p) weights[p] = -__builtin_inff();
  Lanes most = all_lanes(query.max);
  for (std::size_t p = 0; p < n; p += kLanes) most = max(load_lanes(weights + p), most);
  const float new_max = largest(halves_max(most));

  scores.shrink[q] = first_lane(exp_lanes(all_lanes(query.max - new_max)));
  query.max = new_max;
  for (std::size_t p = 0; p < n; p += kLanes) {
    store_lanes(weights + p, exp_lanes(sub(load_lanes(weights + p), all_lanes(new_max))));
  }
  query.sum *= scores.shrink[q];
}

// out = shrink * out + the weighted values, for V times 16 elements from d on.
template <int Q, int V, class T>
void add_values(const Block<T>& block, Query* queries, const Scores<Q>& scores, std::size_t d) {
  const T* values = block.values + d;
  Lanes acc[Q][V];
  for (int q = 0; q < Q; ++q) {
    const Lanes shrink = all_lanes(scores.shrink[q]);
    for (int v = 0; v < V; ++v) {
      acc[q][v] = mul(load_lanes(queries[q].out + d + v * kLanes), shrink);
    }
  }
  for (std::size_t p = 0; p < scores.n[0]; ++p) {
    for (int v = 0; v < V; ++v) {
      const Lanes value = load_lanes(values + p * block.stride + v * kLanes);
      for (int q = 0; q < Q; ++q) {
        acc[q][v] = fma(all_lanes(scores.weights[q][p]), value, acc[q][v]);
      }
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (std::size_t p = scores.n[0]; p < scores.n[q]; ++p) {
      const Lanes weight = all_lanes(scores.weights[q][p]);
      for (int v = 0; v < V; ++v) {
        acc[q][v] = fma(weight, load_lanes(values + p * block.stride + v * kLanes), acc[q][v]);
      }
    }
    for (int v = 0; v < V; ++v) store_lanes(queries[q].out + d + v * kLanes, acc[q][v]);
  }
}

template <class T>
void ask_values(const Block<T>& block, std::size_t at, std::size_t n) {
  const std::size_t bytes = block.head_dim * sizeof(T);
  for (std::size_t p = at; p < at + n; ++p) {
    const auto* row = reinterpret_cast<const char*>(block.values + p * block.stride);
    for (std::size_t i = 0; i < bytes; i += 64) _mm_prefetch(row + i, _MM_HINT_T1);
  }
}

template <int Q, class T>
void attend(const Block<T>& block, Query* queries) {
  constexpr int kMost = kTileSums / Q;
  constexpr int P = kMost >= 8 ? 8 : kMost >= 4 ? 4 : kMost >= 2 ? 2 : 1;  // divides a whole block
  constexpr int V = Q == 1 ? 4 : Q <= 3 ? 2 : 1;
  Scores<Q> scores;
  float(*folds[Q])[4];
  for (int q = 0; q < Q; ++q) {
    scores.n[q] = min_size(kSoftmaxBlock, queries[q].length - block.first);
    folds[q] = scores.folds[q];
    for (std::size_t p = scores.n[q]; p % 8 != 0; ++p) _mm_store_ps(folds[q][p], _mm_setzero_ps());
  }
  std::size_t at = 0;
  for (; at + P <= scores.n[0]; at += P) {
    if (block.ask_values) ask_values(block, at, P);
    dot_keys<Q, P>(block, queries, at, folds);
  }
  for (; at < scores.n[0]; ++at) dot_keys<Q, 1>(block, queries, at, folds);
  for (int q = 0; q < Q; ++q) {
    for (std::size_t p = at; p < scores.n[q]; ++p) {
      dot_keys<1, 1>(block, queries + q, p, {folds[q]});
    }
  }
  for (int q = 0; q < Q; ++q) softmax(queries[q], scores, q, block.scale);
  for (std::size_t p = 0; p < scores.n[Q - 1]; ++p) {  // Q chains side by side
    for (int q = 0; q < Q; ++q) {
      if (p < scores.n[q]) queries[q].sum += scores.weights[q][p];
    }
  }
  std::size_t d = 0;
  for (; d + V * kLanes <= block.head_dim; d += V * kLanes) {
    add_values<Q, V>(block, queries, scores, d);
  }
  for (; d < block.head_dim; d += kLanes) add_values<Q, 1>(block, queries, scores, d);
}

template <class T>
void attend(const Block<T>& block, Query* queries, std::size_t n) {
  switch (n) {
    case 1:
      return attend<1>(block, queries);
    case 2:
      return attend<2>(block, queries);
    case 3:
      return attend<3>(block, queries);
    case 4:
      return attend<4>(block, queries);
    case 5:
      return attend<5>(block, queries);
    default:
      return attend<kTogether>(block, queries);
  }
}

template <class T>
void attention(const AttentionTile& tile) {
  Query queries[kTileQueries];
  const std::size_t n = tile.n_tokens * tile.n_heads;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t t = i / tile.n_heads, at = i % tile.n_heads * tile.head_dim;
    queries[i] = {tile.q + t * tile.q_stride + at, tile.out + t * tile.out_stride + at,
                  tile.length + t, -__builtin_inff(), 0.0F};
    for (std::size_t d = 0; d < tile.head_dim; d += kLanes) {
      store_lanes(queries[i].out + d, zero_lanes());
    }
  }
  std::size_t begin = 0;  // of those that see the block
  for (std::size_t first = 0; first < tile.length + tile.n_tokens - 1; first += kSoftmaxBlock) {
    Block<T> block{static_cast<const T*>(tile.keys) + first * tile.stride,
                   static_cast<const T*>(tile.values) + first * tile.stride,
                   tile.stride,
                   tile.head_dim,
                   first,
                   tile.scale,
                   true};
    while (queries[begin].length <= first) ++begin;
    for (std::size_t i = begin; i < n; i += kTogether) {
      attend(block, queries + i, min_size(kTogether, n - i));
      block.ask_values = false;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Lanes sum = all_lanes(queries[i].sum);
    for (std::size_t d = 0; d < tile.head_dim; d += kLanes) {
      float* out = queries[i].out + d;
      store_lanes(out, div(load_lanes(out), sum));
    }
  }
}

}  // namespace
}  // namespace tsq::kernels
