#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

// A head's inputs; keys and values of a position lie `stride` elements apart.
template <class T>
struct Head {
  Guarded<float> q;
  Guarded<T> keys;
  Guarded<T> values;
  Guarded<float> out;
  std::size_t stride;
  std::size_t length;
  float scale;

  Head(std::size_t head_dim, std::size_t positions, std::size_t step)
      : q(head_dim),
        keys((positions - 1) * step + head_dim),
        values((positions - 1) * step + head_dim),
        out(blank_outputs(head_dim)),
        stride(step),
        length(positions),
        scale(1.0F / std::sqrt(static_cast<float>(head_dim))) {}

  AttentionTile view() {
    return {.q = q.data(),
            .keys = keys.data(),
            .values = values.data(),
            .stride = stride,
            .length = length,
            .n_tokens = 1,
            .n_heads = 1,
            .head_dim = q.size(),
            .scale = scale,
            .out = out.data()};
  }
};

void set(float& to, float value) { to = value; }
void set(std::uint16_t& to, float value) { scalar::to_f16(&value, 1, &to); }
double get(float x) { return x; }
double get(std::uint16_t x) { return half_value(x); }

template <class T>
Head<T> random_head(std::size_t head_dim, std::size_t length, std::size_t stride,
                    std::uint64_t seed, float spread) {
  Head<T> h(head_dim, length, stride);
  Random random(seed);
  for (float& v : h.q) v = spread * random.real();
  for (T& v : h.keys) set(v, spread * random.real());
  for (T& v : h.values) set(v, random.real());
  return h;
}

AttentionFn* scalar_attention(float) { return scalar::attention_f32; }
AttentionFn* scalar_attention(std::uint16_t) { return scalar::attention_f16; }

// Equal scores: the output is the mean, exact for small integers and a power of two of positions.
TEST(AttentionScalar, EqualScoresGiveTheMean) {
  Head<float> h(32, 256, 40);
  Random random(1);
  for (float& v : h.values) v = static_cast<float>(random.between(-9, 9));
  scalar::attention_f32(h.view());
  for (std::size_t d = 0; d < 32; ++d) {
    float sum = 0;
    for (std::size_t p = 0; p < 256; ++p) sum += h.values[p * 40 + d];
    EXPECT_EQ(h.out[d], sum / 256) << d;
  }
}

// A score 100 above the rest, wherever it stands, leaves its value alone: exp(-100) is 0.
TEST(AttentionScalar, TheLargestScoreWins) {
  for (const std::size_t winner : {0, 5, 63, 64, 100, 129}) {
    Head<std::uint16_t> h(16, 130, 16);
    Random random(2);
    for (auto& v : h.values) set(v, random.real());
    h.q[3] = 50;
    set(h.keys[winner * 16 + 3], 8);
    h.scale = 0.25F;
    scalar::attention_f16(h.view());
    for (std::size_t d = 0; d < 16; ++d) {
      EXPECT_EQ(h.out[d], half_value(h.values[winner * 16 + d])) << winner;
    }
  }
}

// Against the softmax in double. With |value| <= 1 the error is that of the weights, relative,
// twice (numerator and denominator): an exp's 2e-7, its argument's rounding, and one rounding per
// position in sum and accumulator and per block's rescaling. The argument: a score's fma chain
// (head_dim / 16 + 4 steps on partial sums up to sum |q k|), the scaling and two subtractions.
template <class T>
void compare_with_double(std::size_t head_dim, std::size_t length) {
  const double eps = 0x1p-24;
  Head<T> h = random_head<T>(head_dim, length, head_dim, length, 2);
  scalar_attention(T{})(h.view());
  std::vector<double> scores(length);
  double magnitude = 0;
  double max = -INFINITY;
  for (std::size_t p = 0; p < length; ++p) {
    double sum = 0;
    double absolute = 0;
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double product = h.q[i] * get(h.keys[p * h.stride + i]);
      sum += product;
      absolute += std::fabs(product);
    }
    scores[p] = sum * h.scale;
    magnitude = std::max(magnitude, absolute * h.scale);
    max = std::max(max, scores[p]);
  }
  const auto n = static_cast<double>(length);
  const double argument = (static_cast<double>(head_dim) / 16 + 8) * magnitude * eps;
  const double bound = 2 * ((2e-7 + 2 * argument) * (1 + n / 64) + 2 * n * eps);
  for (std::size_t d = 0; d < head_dim; ++d) {
    double sum = 0;
    double weighted = 0;
    for (std::size_t p = 0; p < length; ++p) {
      const double e = std::exp(scores[p] - max);
      sum += e;
      weighted += e * get(h.values[p * h.stride + d]);
    }
    EXPECT_NEAR(h.out[d], weighted / sum, bound) << length << " positions, " << d;
  }
  EXPECT_LT(bound, 5e-3);  // a position left out, or counted twice, moves the output further
}

TEST(AttentionScalar, IsTheSoftmax) {
  for (const std::size_t length : {1, 2, 63, 64, 65, 200}) {
    compare_with_double<float>(64, length);
    compare_with_double<std::uint16_t>(128, length);
  }
}

template <class T>
void compare_with_scalar(AttentionFn* attention) {
  for (const std::size_t head_dim : {16, 32, 48, 64, 80, 96, 112, 128, 144, 192, 256, 272, 1024}) {
    for (const std::size_t length : {1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 300}) {
      for (const float spread : {0.5F, 8.0F}) {
        Head<T> h = random_head<T>(head_dim, length, head_dim + 16, length, spread);
        scalar_attention(T{})(h.view());
        const Guarded<float> expected = h.out;
        h.out = blank_outputs(head_dim);
        attention(h.view());
        expect_same_bits(
            h.out, expected,
            "head_dim " + std::to_string(head_dim) + ", " + std::to_string(length) + " positions");
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Tokens and heads that share keys and values are what each of them is alone, at every level: the
// tile ends at `last` positions, the end of a block or not.
template <class T>
void compare_tile_with_heads(AttentionFn* attention, std::size_t n_tokens, std::size_t n_heads,
                             std::size_t head_dim, std::size_t last) {
  const std::size_t q_stride = n_heads * head_dim + 3, out_stride = n_heads * head_dim + 5;
  Head<T> h = random_head<T>(head_dim, last, head_dim, last + n_heads, 4);
  const Guarded<float> q = random_floats((n_tokens - 1) * q_stride + n_heads * head_dim, last);
  Guarded<float> expected = blank_outputs((n_tokens - 1) * out_stride + n_heads * head_dim);
  Guarded<float> actual = blank_outputs(expected.size());
  AttentionTile tile = h.view();
  tile.scale = 2;
  tile.length = last - n_tokens + 1;
  for (std::size_t t = 0; t < n_tokens; ++t) {
    for (std::size_t i = 0; i < n_heads; ++i) {
      AttentionTile head = tile;
      head.q = q.data() + t * q_stride + i * head_dim;
      head.length = tile.length + t;
      head.out = expected.data() + t * out_stride + i * head_dim;
      scalar_attention(T{})(head);
    }
  }
  tile.q = q.data();
  tile.q_stride = q_stride;
  tile.n_tokens = n_tokens;
  tile.n_heads = n_heads;
  tile.out = actual.data();
  tile.out_stride = out_stride;
  attention(tile);
  expect_same_bits(actual, expected,
                   std::to_string(n_tokens) + " tokens of " + std::to_string(n_heads) +
                       " heads, head_dim " + std::to_string(head_dim) + ", " +
                       std::to_string(last) + " positions");
}

template <class T>
void compare_tiles(AttentionFn* attention) {
  for (const auto& [n_tokens, n_heads] : {std::pair<std::size_t, std::size_t>{1, 2},
                                          {1, 3},
                                          {1, 4},
                                          {1, 5},
                                          {1, 6},
                                          {1, 7},
                                          {1, 16},
                                          {2, 1},
                                          {3, 2},
                                          {5, 3},
                                          {16, 1},
                                          {16, 6},
                                          {32, 4},
                                          {128, 1}}) {
    for (const std::size_t head_dim : {16, 48, 128}) {
      for (const std::size_t last : {n_tokens, n_tokens + 1, n_tokens + 63, n_tokens + 130}) {
        compare_tile_with_heads<T>(attention, n_tokens, n_heads, head_dim, last);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(AttentionScalar, ATileIsItsHeads) { compare_tiles<float>(scalar::attention_f32); }

class Attention : public EveryIsa {};
TEST_P(Attention, ATileIsItsHeadsInF16) { compare_tiles<std::uint16_t>(k_->attention_f16); }
TEST_P(Attention, ATileIsItsHeadsInF32) { compare_tiles<float>(k_->attention_f32); }
TEST_P(Attention, EqualsScalarInF16) { compare_with_scalar<std::uint16_t>(k_->attention_f16); }
TEST_P(Attention, EqualsScalarInF32) { compare_with_scalar<float>(k_->attention_f32); }
TSQ_FOR_EVERY_ISA(Attention);

}  // namespace
}  // namespace tsq::kernels::test
