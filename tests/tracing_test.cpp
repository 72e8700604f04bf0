// What --check-hadamard shows: figures that can be worked out, and kernels that are wrong.
#include "backend/tracing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "engine/session_hooks.h"
#include "kernels/dispatch.h"
#include "models.h"

namespace tsq::test {
namespace {

constexpr int kTokens = 11;

std::vector<Token> some_tokens() {
  std::vector<Token> tokens(kTokens);
  for (int i = 0; i < kTokens; ++i) tokens[i] = 3 + 17 * i;
  return tokens;
}

ActivationTrace trace_of(const std::string& file, const SessionOptions& options = {},
                         const kernels::Kernels* table = nullptr) {
  const Model model = open_model(file, /*t2=*/false);
  ActivationTrace trace;
  SessionHooks hooks;
  hooks.trace = &trace;
  hooks.kernels = table;
  hooks.threads = 1;
  auto session = create_session(model, options, hooks);
  EXPECT_TRUE(session);
  EXPECT_TRUE(session->append(some_tokens()));
  return trace;
}

TEST(ActivationTrace, EveryStageOfAModelIsSoundAndNamed) {
  const ActivationTrace trace = trace_of("qwen3_rot128_wide.ptq1_0.gguf");
  std::vector<std::string> names;
  for (const TracedStage& stage : trace.stages()) {
    names.push_back(stage.name);
    ASSERT_NE(stage.rotation, nullptr) << stage.name;
    EXPECT_TRUE(stage.sound()) << stage.name << ": " << stage.deviation;
    EXPECT_GT(stage.deviation, 0) << stage.name;  // f32 rounds
    EXPECT_EQ(stage.checked, stage.name == "token_embd" ? 1 : 2);
    // H and S are orthogonal: of the same size before and after, f32 apart.
    EXPECT_NEAR(stage.after.rms() / stage.before.rms(), 1, 1e-6) << stage.name;
  }
  const std::vector<std::string> first(names.begin(), names.begin() + 5);
  EXPECT_EQ(first, (std::vector<std::string>{"token_embd (rows)", "blk.0.attn_q+attn_k+attn_v",
                                             "blk.0.attn_output", "blk.0.ffn_gate+ffn_up",
                                             "blk.0.ffn_down"}));
  EXPECT_EQ(names.back(), "token_embd");  // a tied head
  EXPECT_EQ(names.size() % 4, 2);
  EXPECT_TRUE(trace.sound());
}

TEST(ActivationTrace, ChangesNoLogit) {
  const Model model = open_model("qwen3_rot64.ptq1_0.gguf", false);
  auto plain = Session::create(model);
  ActivationTrace trace;
  SessionHooks hooks;
  hooks.trace = &trace;
  auto traced = create_session(model, {}, hooks);
  ASSERT_TRUE(plain && traced);
  const auto a = plain->append(some_tokens()), b = traced->append(some_tokens());
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(std::ranges::equal(*a, *b));
  EXPECT_FALSE(trace.stages().empty());
}

TEST(ActivationTrace, AModelWithoutRotationsHasOneSide) {
  const ActivationTrace trace = trace_of("llama_tq.tq1_0.gguf");
  ASSERT_FALSE(trace.stages().empty());
  for (const TracedStage& stage : trace.stages()) {
    EXPECT_EQ(stage.rotation, nullptr);
    EXPECT_EQ(stage.checked, 0);
    EXPECT_GT(stage.before.rms(), 0);
    EXPECT_EQ(stage.after.rms(), 0);
  }
}

TEST(ActivationTrace, NothingIsRoundedInTheF32Path) {
  const ActivationTrace trace =
      trace_of("qwen3_rot64.ptq1_0.gguf", {.activations = Activations::f32});
  for (const TracedStage& stage : trace.stages()) {
    EXPECT_FALSE(stage.quantised);
    EXPECT_EQ(stage.before.int8_error(), 0);
    EXPECT_TRUE(stage.sound());
  }
}

// Kernels that are wrong in the ways that a rotation goes wrong.
const kernels::Kernels& scalar() { return *kernels::table(kernels::Isa::scalar); }

void one_wrong_sign(const float* x, const std::uint32_t* signs, std::size_t n, std::size_t block,
                    float* y) noexcept {
  std::vector<std::uint32_t> flipped(signs, signs + n / 32);
  flipped[n / 64] ^= 1u << 7;
  scalar().rotate(x, flipped.data(), n, block, y);
}
void no_signs(const float* x, const std::uint32_t*, std::size_t n, std::size_t block,
              float* y) noexcept {
  scalar().rotate(x, nullptr, n, block, y);
}
void half_a_block(const float* x, const std::uint32_t* signs, std::size_t n, std::size_t block,
                  float* y) noexcept {
  scalar().rotate(x, signs, n, block / 2, y);
}
void not_at_all(const float* x, const std::uint32_t*, std::size_t n, std::size_t,
                float* y) noexcept {
  std::copy_n(x, n, y);
}
void one_value_off(const float* x, const std::uint32_t* signs, std::size_t n, std::size_t block,
                   float* y) noexcept {
  scalar().rotate(x, signs, n, block, y);
  y[n - 1] *= 1.0001f;
}
void signs_last(const float* x, const std::uint32_t* signs, std::size_t n, std::size_t block,
                float* y) noexcept {
  scalar().unrotate(x, signs, n, block, y);
}

// The scalar table with this rotation wherever activations are rotated.
template <kernels::RotateFn* rotate>
kernels::Kernels rotating_by() {
  kernels::Kernels table = scalar();
  table.rotate = rotate;
  table.rotate_quantize = [](const float* x, const std::uint32_t* signs, std::size_t n,
                             std::size_t block, float* y, std::size_t padded,
                             const kernels::Q8Column& out) noexcept {
    rotate(x, signs, n, block, y);
    std::fill(y + n, y + padded, 0.0f);
    return scalar().quantize(y, padded, out);
  };
  return table;
}
TEST(ActivationTrace, WrongRotationsShow) {
  for (const auto& [what, table] : {std::pair("one sign", rotating_by<one_wrong_sign>()),
                                    std::pair("no signs", rotating_by<no_signs>()),
                                    std::pair("half a block", rotating_by<half_a_block>()),
                                    std::pair("none", rotating_by<not_at_all>()),
                                    std::pair("signs last", rotating_by<signs_last>()),
                                    std::pair("one value", rotating_by<one_value_off>())}) {
    const ActivationTrace trace = trace_of("qwen3_rot64.ptq1_0.gguf", {}, &table);
    EXPECT_FALSE(trace.sound()) << what;
    for (const TracedStage& stage : trace.stages()) {
      const bool rows = stage.name == "token_embd (rows)";  // the other kernel's, which is right
      EXPECT_EQ(stage.sound(), rows) << what << " " << stage.name << " " << stage.deviation;
    }
  }
}

TEST(ActivationTrace, WrongEmbeddingsShow) {
  for (const auto& [what, wrong] :
       {std::pair("one sign", &one_wrong_sign), std::pair("half a block", &half_a_block),
        std::pair("signs first", scalar().rotate)}) {
    kernels::Kernels table = scalar();
    table.unrotate = wrong;
    const ActivationTrace trace = trace_of("qwen3_rot64.ptq1_0.gguf", {}, &table);
    for (const TracedStage& stage : trace.stages())
      EXPECT_EQ(stage.sound(), stage.name != "token_embd (rows)") << what << " " << stage.name;
  }
}

// Of what a backend was given by hand: an embedding of one row, and a matrix that is rotated.
class ByHand {
 public:
  ByHand(const std::vector<float>& row, const format::Rotation& rotation,
         const kernels::Kernels* table = kernels::table(kernels::Isa::scalar))
      : n_(row.size()), row_(row.size()), matrix_(row.size() * 32) {
    std::ranges::copy(row, row_.data());
    const auto dense = [&](Buffer<float>& values, std::uint64_t rows) {
      return Weight{.name = "a.matrix.weight",
                    .shape = {format::Encoding::f32, 0, format::ScaleKind::none, rows, n_},
                    .body = reinterpret_cast<const std::byte*>(values.data())};
    };
    const Weight embedding = dense(row_, 1);
    ProjectionGroup group = {dense(matrix_, 32)};
    group[0].rotation = &rotation;
    auto backend = make_tracing_backend({.kernels = table, .max_tokens = 2}, trace);
    const std::vector<std::int32_t> zeros = {0, 0};
    const Batch batch{zeros, zeros, zeros};
    const Tensor x = backend->new_tensor(2, n_), y = backend->new_tensor(2, 32);
    backend->reserve(group, 2, Epilogue::none);
    backend->begin(batch);
    backend->embed(embedding, batch, x);
    backend->project(group, x, 2, {y});
  }
  const TracedStage& stage() const { return trace.stages()[0]; }

  ActivationTrace trace;

 private:
  std::size_t n_;
  Buffer<float> row_, matrix_;
};

TEST(ActivationTrace, FiguresOfAKnownVector) {
  // Rows of 32, so that the encoding needs no padding: seven more blocks of zeros.
  std::vector<float> row(32);
  std::iota(row.begin(), row.begin() + 4, 1.0f);
  const format::Rotation plain{.block = 4, .width = 32, .signs = {}};
  const ByHand traced(row, plain);
  ASSERT_EQ(traced.trace.stages().size(), 1u);
  const TracedStage& stage = traced.stage();
  EXPECT_EQ(stage.name, "a.matrix");
  // H [1 2 3 4] = [5 -1 -2 0]; both have the squares 30.
  EXPECT_DOUBLE_EQ(stage.before.rms(), std::sqrt(30.0 / 32));
  EXPECT_DOUBLE_EQ(stage.after.rms(), std::sqrt(30.0 / 32));
  EXPECT_EQ(stage.before.absmax(), 4);
  EXPECT_EQ(stage.after.absmax(), 5);
  EXPECT_DOUBLE_EQ(stage.before.crest(), 4 / std::sqrt(30.0 / 32));
  EXPECT_DOUBLE_EQ(stage.after.crest(), 5 / std::sqrt(30.0 / 32));
  EXPECT_EQ(stage.deviation, 0);  // small integers are exact
  EXPECT_EQ(stage.checked, 2u);
  // With signs + - - +: H [1 -2 -3 4] = [0 -2 -1 5].
  const format::Rotation signs{.block = 4, .width = 32, .signs = {0b0110}};
  EXPECT_EQ(ByHand(row, signs).stage().after.absmax(), 5);
  EXPECT_EQ(ByHand(row, signs).stage().deviation, 0);
}

TEST(ActivationTrace, Int8ErrorByDefinition) {
  std::vector<float> x(256);
  double squares = 0, per_group = 0, per_token = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)) * (i < 128 ? 1 : 20));
  const auto rounding = [&](std::size_t i, double largest) {
    const double q = std::round(static_cast<double>(x[i]) * 127 / largest);
    return std::pow(q * largest / 127 - static_cast<double>(x[i]), 2);
  };
  double largest[2] = {};
  for (std::size_t i = 0; i < x.size(); ++i)
    largest[i / 128] = std::max(largest[i / 128], std::abs(static_cast<double>(x[i])));
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    per_group += rounding(i, largest[i / 128]);
    per_token += rounding(i, largest[1]);
  }
  VectorStatistics groups, tokens;
  groups.add(x, format::ActivationQuant::per_group);
  tokens.add(x, format::ActivationQuant::per_token);
  EXPECT_NEAR(groups.int8_error(), std::sqrt(per_group / squares), 1e-9);
  EXPECT_NEAR(tokens.int8_error(), std::sqrt(per_token / squares), 1e-9);
  EXPECT_NE(groups.int8_error(), tokens.int8_error());
  VectorStatistics zeros;
  zeros.add(std::vector<float>(128), format::ActivationQuant::per_group);
  EXPECT_EQ(zeros.int8_error(), 0);
  EXPECT_EQ(zeros.crest(), 0);
}

// With one sign the result is off by 2 |x_i| / sqrt(B) everywhere, however small that is.
TEST(ActivationTrace, TheSmallestWrongSignIsLargerThanTheAllowance) {
  std::vector<float> row(1024, 1.0f);
  row[512 + 7] = 0.001f;
  const format::Rotation rotation{
      .block = 1024, .width = 1024, .signs = std::vector<std::uint32_t>(32)};
  EXPECT_TRUE(ByHand(row, rotation).trace.sound());
  const kernels::Kernels table = rotating_by<one_wrong_sign>();
  EXPECT_FALSE(ByHand(row, rotation, &table).trace.sound());
}

}  // namespace
}  // namespace tsq::test
