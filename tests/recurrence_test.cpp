// The recurrent operations of a backend: sequences of one batch know nothing of each other.
#include <gtest/gtest.h>

#include "backend/cpu.h"
#include "kernels/dispatch.h"

namespace tsq {
namespace {

constexpr RecurrentShape kShape = {.n_layers = 1,
                                   .n_sequences = 2,
                                   .n_key_heads = 1,
                                   .n_heads = 2,
                                   .key_dim = 16,
                                   .value_dim = 16};
constexpr std::size_t kTokens = 8;

// Tables that embed() reads the inputs from: row t is token t's.
struct Table {
  std::vector<float> values;
  Weight weight;

  Table(std::size_t width, std::uint32_t seed) : values(kTokens * 64) {
    for (float& v : values) {
      seed = seed * 1664525u + 1013904223u;
      v = static_cast<float>(seed >> 8) * 0x1p-23f - 1;
    }
    const std::size_t stride = width < 32 ? 32 : width;  // dense rows are padded to 32
    weight.shape.encoding = format::Encoding::f32;
    weight.shape.rows = kTokens;
    weight.shape.cols = width;
    EXPECT_EQ(*format::body_bytes(weight.shape), kTokens * stride * sizeof(float));
    weight.body = reinterpret_cast<const std::byte*>(values.data());
  }
};

class RecurrenceTest : public testing::Test {
 protected:
  RecurrenceTest()
      : backend_(make_cpu_backend(
            {.kernels = kernels::chosen().kernels, .threads = 2, .max_tokens = kTokens})),
        qkv_(backend_->new_tensor(kTokens, kShape.channels())),
        a_(backend_->new_tensor(kTokens, 2)),
        b_(backend_->new_tensor(kTokens, 2)),
        out_(backend_->new_tensor(kTokens, 32)),
        state_(backend_->new_recurrent_state(kShape)) {}

  // The outputs of these tokens, one row of 32 each.
  std::vector<float> run(const std::vector<std::int32_t>& tokens,
                         const std::vector<std::int32_t>& positions,
                         const std::vector<std::int32_t>& sequences) {
    const Batch batch{tokens, positions, sequences};
    backend_->begin(batch);
    backend_->embed(qkv_table_.weight, batch, qkv_);
    backend_->embed(a_table_.weight, batch, a_);
    backend_->embed(b_table_.weight, batch, b_);
    backend_->causal_conv(taps_.weight, batch, state_, 0, qkv_);
    backend_->delta_net(qkv_, a_, b_, {{"rate", rate_}, {"bias", bias_}}, batch, state_, 0, out_);
    std::vector<float> outputs;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto row = backend_->read(out_, t);
      outputs.insert(outputs.end(), row.begin(), row.begin() + 32);
    }
    return outputs;
  }
  static std::vector<float> rows(const std::vector<float>& outputs,
                                 std::vector<std::size_t> which) {
    std::vector<float> picked;
    for (const std::size_t t : which) {
      picked.insert(picked.end(), outputs.begin() + static_cast<std::ptrdiff_t>(32 * t),
                    outputs.begin() + static_cast<std::ptrdiff_t>(32 * (t + 1)));
    }
    return picked;
  }

  const Table qkv_table_{64, 1}, a_table_{2, 2}, b_table_{2, 3}, taps_{64, 4};
  const float rate_[2] = {-0.5f, -0.1f}, bias_[2] = {0.25f, -1};
  std::unique_ptr<Backend> backend_;
  Tensor qkv_, a_, b_, out_;
  RecurrentState state_;
};

TEST_F(RecurrenceTest, SequencesOfABatchAreApart) {
  const std::vector<float> first = run({0, 1, 2}, {0, 1, 2}, {0, 0, 0});
  const std::vector<float> second = run({3, 4, 5}, {0, 1, 2}, {0, 0, 0});
  EXPECT_NE(first, second);
  // Interleaved, in one batch and in two.
  const std::vector<float> mixed = run({0, 3, 4, 1, 2, 5}, {0, 0, 1, 1, 2, 2}, {0, 1, 1, 0, 0, 1});
  EXPECT_EQ(rows(mixed, {0, 3, 4}), first);
  EXPECT_EQ(rows(mixed, {1, 2, 5}), second);
  run({3, 0}, {0, 0}, {1, 0});
  const std::vector<float> rest = run({1, 4, 5, 2}, {1, 1, 2, 2}, {0, 1, 1, 0});
  EXPECT_EQ(rows(rest, {0, 3}), rows(first, {1, 2}));
  EXPECT_EQ(rows(rest, {1, 2}), rows(second, {1, 2}));
}

TEST_F(RecurrenceTest, SavesAndRestoresOneSequence) {
  const std::vector<float> expected = run({0, 1, 2}, {0, 1, 2}, {0, 0, 0});
  run({0, 6, 1}, {0, 0, 1}, {0, 1, 0});
  const std::vector<std::byte> saved = backend_->save(state_, 0);
  EXPECT_EQ(saved.size(), kShape.bytes() / 2);
  run({7, 7}, {2, 1}, {0, 1});
  backend_->restore(state_, 0, saved);
  EXPECT_EQ(run({2}, {2}, {0}), rows(expected, {2}));
  // Into the other one.
  backend_->restore(state_, 1, saved);
  EXPECT_EQ(run({2}, {2}, {1}), rows(expected, {2}));
}

}  // namespace
}  // namespace tsq
