// The kernels of gated DeltaNet: golden values of another implementation, the recurrence in double
// over thousands of tokens, the same bits at every level and for any split.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/kernels/support.h"

namespace tsq::kernels::test {
namespace {

// One head's inputs as a model makes them: q, k and v of a token lie in one row.
struct Head {
  std::size_t key_dim, rows, n, stride;
  Guarded<float> mixed, decay, beta, state, out;

  Head(std::size_t dim, std::size_t value_dim, std::size_t tokens, std::uint64_t seed)
      : key_dim(dim),
        rows(value_dim),
        n(tokens),
        stride(2 * dim + value_dim),
        mixed(random_floats(tokens * stride, seed)),
        decay(tokens),
        beta(tokens),
        state(random_floats(value_dim * dim, seed + 1)),
        out(blank_outputs(tokens * value_dim)) {
    Random random(seed + 2);
    for (std::size_t t = 0; t < n; ++t) {
      float *const to_q = &mixed[t * stride], *const to_k = to_q + dim;
      scalar::l2_norm(to_q, dim, 1e-6F, 1 / std::sqrt(static_cast<float>(dim)), to_q);
      scalar::l2_norm(to_k, dim, 1e-6F, 1, to_k);
      decay[t] = 1 - std::fabs(random.real()) * (t % 2 == 0 ? 0.5F : 0.001F);
      beta[t] = std::fabs(random.real());
    }
  }

  const float* q(std::size_t t) const { return &mixed[t * stride]; }
  const float* k(std::size_t t) const { return q(t) + key_dim; }
  const float* v(std::size_t t) const { return q(t) + 2 * key_dim; }

  // Tokens [first, last).
  void apply(DeltaNetFn* fn, RowRange range, std::size_t first, std::size_t last) {
    fn({.state = state.data(),
        .key_dim = key_dim,
        .n = last - first,
        .q = q(first),
        .k = k(first),
        .v = v(first),
        .stride = stride,
        .decay = &decay[first],
        .beta = &beta[first],
        .gate_stride = 1,
        .out = &out[first * rows],
        .out_stride = rows},
       range);
  }
};

// The recurrence in double, and what f32 may lose on the way: with u = 2^-24, a step rounds the
// decayed row (u |s|), its dot with k (8 fmas and 4 sums of a lane's 8 products: 12 u |s|), the
// difference with v and its product with beta (2 u (|v| + |s|)) and the new row (u |s|): at most u
// (16 |s| + 2 |v|). I - beta k k^T, |k| = 1, does not enlarge what earlier steps lost, decay
// shrinks it. Reading adds 12 u |s| |q|. |k| and |q| are themselves rounded: a hundredth is added
// for it.
struct Reference {
  std::vector<double> out, allowed;
};
Reference in_double(const Head& head) {
  const double u = 0x1p-24;
  Reference reference{std::vector<double>(head.out.size()), std::vector<double>(head.out.size())};
  std::vector<double> s(head.key_dim);
  for (std::size_t i = 0; i < head.rows; ++i) {
    std::copy_n(&head.state[i * head.key_dim], head.key_dim, s.begin());
    double lost = 0;
    for (std::size_t t = 0; t < head.n; ++t) {
      const float *q = head.q(t), *k = head.k(t);
      double before = 0, dot = 0, after = 0, out = 0, length = 0;
      for (std::size_t j = 0; j < head.key_dim; ++j) {
        s[j] *= static_cast<double>(head.decay[t]);
        before += s[j] * s[j];
        dot += s[j] * static_cast<double>(k[j]);
      }
      const double v = static_cast<double>(head.v(t)[i]);
      const double d = static_cast<double>(head.beta[t]) * (v - dot);
      for (std::size_t j = 0; j < head.key_dim; ++j) {
        s[j] += d * static_cast<double>(k[j]);
        after += s[j] * s[j];
        out += s[j] * static_cast<double>(q[j]);
        length += static_cast<double>(q[j]) * static_cast<double>(q[j]);
      }
      const double largest = std::sqrt(std::max(before, after));
      lost = lost * static_cast<double>(head.decay[t]) + u * (16 * largest + 2 * std::abs(v));
      reference.out[t * head.rows + i] = out;
      reference.allowed[t * head.rows + i] = 1.01 * std::sqrt(length) * (lost + 12 * u * largest);
    }
  }
  return reference;
}

// The largest error over what is allowed.
double worst(const Head& head, const Reference& reference) {
  double worst = 0;
  for (std::size_t i = 0; i < head.out.size(); ++i) {
    const double error = std::abs(static_cast<double>(head.out[i]) - reference.out[i]);
    worst = std::max(worst, error / reference.allowed[i]);
  }
  return worst;
}

TEST(DeltaNetScalar, FollowsTheRecurrenceFor4000Tokens) {
  Head head(128, 8, 4000, 1);
  const Reference reference = in_double(head);
  Head half = head;
  head.apply(scalar::delta_net, {0, 8}, 0, head.n);
  EXPECT_LE(worst(head, reference), 1);

  // A state that is kept in fp16 between batches exceeds the bound.
  for (std::size_t t = 0; t < half.n; t += 500) {
    std::vector<std::uint16_t> kept(half.state.size());
    scalar::to_f16(half.state.data(), kept.size(), kept.data());
    scalar::from_f16(kept.data(), kept.size(), half.state.data());
    half.apply(scalar::delta_net, {0, 8}, t, t + 500);
  }
  EXPECT_GT(worst(half, reference), 1);
}

TEST(DeltaGatesScalar, AreTheFunctions) {
  const std::size_t n = 4001;
  Guarded<float> a(n), b(n), rate(n), bias(n), decay(n), beta(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = b[i] = (static_cast<float>(i) - 2000) / 50;  // -40 to 40
    rate[i] = i % 2 == 0 ? -0.01F : -7.0F;
    bias[i] = 0.25F;
  }
  scalar::delta_gates(a.data(), b.data(), rate.data(), bias.data(), n, decay.data(), beta.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(a[i] + bias[i]), r = static_cast<double>(rate[i]);
    const double g = r * std::log1p(std::exp(v));
    // softplus is within 4e-7, its product with the rate and exp within 2e-7 more each.
    const double tolerance = 6e-7 * std::abs(g) + 2e-7;
    if (g > -87) {
      EXPECT_NEAR(static_cast<double>(decay[i]) / std::exp(g), 1, tolerance) << v;
    } else {
      EXPECT_LE(decay[i], 1.7e-38F) << v;
    }
    const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(b[i])));
    EXPECT_NEAR(static_cast<double>(beta[i]) / sigmoid, 1, 4e-7) << b[i];
  }
}

// The example of golden-blocks.json, its recipe of inputs restated.
float recipe(std::size_t i, std::size_t a, std::size_t c, std::size_t m, float den) {
  return (static_cast<float>((i * a + c) % m) - static_cast<float>(m / 2)) / den;
}

TEST(DeltaNetGolden, GivesTheOutputsAndTheState) {
  std::ifstream file(TSQ_TEST_DATA "/golden-blocks.json");
  const auto golden = nlohmann::json::parse(file).at("gated_delta_net");
  constexpr std::size_t kTokens = 6, kKeyHeads = 2, kHeads = 4, kDim = 4, kChannels = 32;
  Guarded<float> mixed(kTokens * kChannels), taps(4 * kChannels), history(3 * kChannels);
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = recipe(i, 37, 11, 101, 32);
  for (std::size_t i = 0; i < taps.size(); ++i) {
    taps[i % 4 * kChannels + i / 4] = recipe(i, 29, 7, 61, 64);
  }
  for (float& x : history) x = 0;
  scalar::causal_conv(
      {taps.data(), kChannels, history.data(), kChannels, mixed.data(), kChannels, kTokens}, 0,
      kChannels);
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(history[i], golden["final_conv_history"][i / kChannels][i % kChannels].get<float>());
  }

  Guarded<float> rate(kHeads), bias(kHeads), norm(kDim);
  for (std::size_t h = 0; h < kHeads; ++h) {
    rate[h] = -static_cast<float>(h + 1) / 4;
    bias[h] = (static_cast<float>(3 * h % 7) - 3) / 4;
    norm[h] = 1 + (static_cast<float>(h) - 1) / 8;
  }
  // Heads of 4 in rows of 16: zeros change no dot.
  std::vector<Guarded<float>> states(kHeads, Guarded<float>(kDim * 16));
  for (std::size_t t = 0; t < kTokens; ++t) {
    Guarded<float> a(kHeads), b(kHeads), decay(kHeads), beta(kHeads);
    for (std::size_t h = 0; h < kHeads; ++h) {
      a[h] = recipe(t * kHeads + h, 13, 3, 29, 8);
      b[h] = recipe(t * kHeads + h, 17, 5, 31, 8);
    }
    scalar::delta_gates(a.data(), b.data(), rate.data(), bias.data(), kHeads, decay.data(),
                        beta.data());
    for (std::size_t h = 0; h < kHeads; ++h) {
      Guarded<float> q(16), k(16), out(kDim), z(kDim);
      const float* const row = &mixed[t * kChannels];
      std::copy_n(row + h % kKeyHeads * kDim, kDim, q.data());
      std::copy_n(row + 8 + h % kKeyHeads * kDim, kDim, k.data());
      // The golden numbers divide by max(norm, eps): as without an eps, these norms are larger.
      scalar::l2_norm(q.data(), 16, 0, 0.5F, q.data());
      scalar::l2_norm(k.data(), 16, 0, 1, k.data());
      scalar::delta_net({.state = states[h].data(),
                         .key_dim = 16,
                         .n = 1,
                         .q = q.data(),
                         .k = k.data(),
                         .v = row + 16 + h * kDim,
                         .stride = 0,
                         .decay = &decay[h],
                         .beta = &beta[h],
                         .gate_stride = 0,
                         .out = out.data(),
                         .out_stride = 0},
                        {0, kDim});
      for (std::size_t i = 0; i < kDim; ++i) {
        EXPECT_NEAR(static_cast<double>(out[i]), golden["o"][t][h * kDim + i].get<double>(), 1e-7);
      }
      // Dividing by an rms of down to 5e-3 makes the rounding of o larger.
      scalar::rms_norm(out.data(), norm.data(), kDim, 1e-6F, out.data());
      for (std::size_t i = 0; i < kDim; ++i) {
        z[i] = recipe(t * kHeads * kDim + h * kDim + i, 19, 23, 53, 16);
      }
      scalar::silu_mul(z.data(), out.data(), kDim, out.data());
      for (std::size_t i = 0; i < kDim; ++i) {
        EXPECT_NEAR(static_cast<double>(out[i]), golden["y"][t][h * kDim + i].get<double>(), 2e-6);
      }
    }
  }
  for (std::size_t h = 0; h < kHeads; ++h) {
    for (std::size_t i = 0; i < kDim * kDim; ++i) {
      EXPECT_NEAR(static_cast<double>(states[h][i / kDim * 16 + i % kDim]),
                  golden["final_state"][h][i].get<double>(), 1e-7);
    }
  }
}

class DeltaNet : public EveryIsa {};

TEST_P(DeltaNet, EqualsScalarForAnySplit) {
  for (const std::size_t key_dim : {16, 32, 48, 64, 128, 256}) {
    for (const std::size_t rows : {1, 5, 16, 128}) {
      const Head inputs(key_dim, rows, 13, key_dim + rows);
      Head expected = inputs;
      expected.apply(scalar::delta_net, {0, rows}, 0, 13);
      Head actual = inputs;
      const std::size_t middle = rows / 2;
      for (const auto& [first, last] :
           {std::pair<std::size_t, std::size_t>(0, 6), {6, 7}, {7, 13}}) {
        actual.apply(k_->delta_net, {middle, rows}, first, last);
        actual.apply(k_->delta_net, {0, middle}, first, last);
      }
      const std::string what = std::to_string(key_dim) + " by " + std::to_string(rows);
      expect_same_bits(actual.out, expected.out, what);
      expect_same_bits(actual.state, expected.state, what);
    }
  }
}

TEST_P(DeltaNet, ConvolvesLikeScalarForAnySplit) {
  for (const std::size_t channels : {1, 7, 8, 16, 33, 96}) {
    const std::size_t n = 9, stride = channels + 3;
    const Guarded<float> taps = random_floats(4 * channels, 1);
    const Guarded<float> x = random_floats(n * stride, 2), before = random_floats(3 * channels, 3);
    Guarded<float> expected = x, expected_history = before, actual = x, history = before;
    const auto run = [&](CausalConvFn* fn, Guarded<float>& y, Guarded<float>& h, std::size_t first,
                         std::size_t last, std::size_t from, std::size_t to) {
      fn({taps.data(), channels, h.data(), channels, y.data() + first * stride, stride,
          last - first},
         from, to);
    };
    run(scalar::causal_conv, expected, expected_history, 0, n, 0, channels);
    for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>(0, 1), {1, 3}, {3, 9}}) {
      run(k_->causal_conv, actual, history, first, last, channels / 3, channels);
      run(k_->causal_conv, actual, history, first, last, 0, channels / 3);
    }
    expect_same_bits(actual, expected, std::to_string(channels));
    expect_same_bits(history, expected_history, std::to_string(channels));
  }
}

TEST_P(DeltaNet, NormsLikeScalar) {
  for (const std::size_t n : {16, 48, 128, 256}) {
    Guarded<float> x = random_floats(n, n);
    Guarded<float> expected(n);
    scalar::l2_norm(x.data(), n, 1e-6F, 0.3F, expected.data());
    k_->l2_norm(x.data(), n, 1e-6F, 0.3F, x.data());
    expect_same_bits(x, expected, std::to_string(n));
  }
}
TSQ_FOR_EVERY_ISA(DeltaNet);

TEST(L2NormScalar, IsTheDefinition) {
  const Guarded<float> x = random_floats(128, 1);
  Guarded<float> y(128);
  scalar::l2_norm(x.data(), 128, 1e-6F, 0.25F, y.data());
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  for (std::size_t i = 0; i < 128; ++i) {  // 12 roundings in the sum, halved by its root; four more
    const double expected = static_cast<double>(x[i]) / std::sqrt(sum + 1e-6) * 0.25;
    EXPECT_NEAR(static_cast<double>(y[i]), expected, 10 * 0x1p-24 * std::abs(expected));
  }
}

}  // namespace
}  // namespace tsq::kernels::test
