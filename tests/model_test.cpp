// Whole models: golden logits of another implementation; the same bits at every CPU level, with any
// number of threads, for any split of a prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "engine/memory_plan.h"
#include "engine/session_hooks.h"
#include "kernels/dispatch.h"
#include "models.h"
#include "tsq/loader.h"
#include "tsq/session.h"

namespace tsq {
namespace {

using test::open_model;

Session make_session(const Model& model, Activations activations, const SessionHooks& hooks = {}) {
  auto session = create_session(model, {.activations = activations}, hooks);
  if (!session) {
    ADD_FAILURE() << session.error().message();
    std::abort();
  }
  return std::move(*session);
}

// Logits of every position, the tokens given in pieces of `piece`.
std::vector<float> run(const Model& model, std::span<const Token> tokens, Activations activations,
                       const SessionHooks& hooks = {}, std::size_t piece = 1 << 20) {
  Session session = make_session(model, activations, hooks);
  std::vector<float> all;
  for (std::size_t i = 0; i < tokens.size(); i += piece) {
    const auto logits =
        session.append(tokens.subspan(i, std::min(piece, tokens.size() - i)), Logits::all);
    if (!logits) {
      ADD_FAILURE() << logits.error().message();
      return {};
    }
    all.insert(all.end(), logits->begin(), logits->end());
  }
  return all;
}

std::vector<SessionHooks> every_level() {
  std::vector<SessionHooks> hooks;
  for (const kernels::Isa isa : kernels::supported_isas()) {
    hooks.push_back({.kernels = kernels::table(isa), .threads = 2, .observer = {}});
  }
  return hooks;
}

class ModelTest : public testing::TestWithParam<std::string> {};

// The worst error over all prompts of the golden file.
double worst_error(const Model& model, const test::Golden& golden, Activations activations,
                   const SessionHooks& hooks = {}) {
  double worst = 0;
  for (const test::GoldenPrompt& prompt : golden.prompts) {
    const std::vector<float> logits = run(model, prompt.tokens, activations, hooks);
    if (logits.empty()) return INFINITY;
    for (std::size_t k = 0; k < prompt.positions.size(); ++k) {
      const double error = test::logit_error(logits.data() + prompt.positions[k] * golden.vocab,
                                             golden.row(prompt.row + k), golden.vocab);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

// One weight of the first row one step too large.
void wrong_weight(const kernels::TernaryMatrix& w, kernels::RowRange rows,
                  const kernels::F32Matrix& x, kernels::Outputs y) noexcept {
  kernels::table(kernels::Isa::scalar)->t1_gemm_f32(w, rows, x, y);
  if (rows.first != 0) return;
  std::uint16_t scale;
  std::memcpy(&scale, w.body, sizeof scale);
  for (std::size_t c = 0; c < x.n; ++c) {
    y.data[c * y.stride] += f16_to_f32(scale) * x.data[c * x.stride];
  }
}

void rope_of_the_other_kind(float* x, const float* cos, const float* sin, std::size_t pairs,
                            bool neox) noexcept {
  kernels::table(kernels::Isa::scalar)->rope(x, cos, sin, pairs, !neox);
}

TEST(F32BoundTest, PlantedDefectsExceedIt) {
  const std::string file = "qwen3_rot128_wide.ptq1_0.gguf";
  const test::Golden golden = test::read_golden(file);
  const Model model = open_model(file);
  kernels::Kernels weight = *kernels::table(kernels::supported_isas().back()), pairs = weight;
  weight.t1_gemm_f32 = wrong_weight;
  pairs.rope = rope_of_the_other_kind;
  for (const kernels::Kernels* bad : {&weight, &pairs}) {
    EXPECT_GT(worst_error(model, golden, Activations::f32, {.kernels = bad}), 1e-4);
  }
}

void forget_nothing(const kernels::DeltaHead& head, kernels::RowRange rows) noexcept {
  const std::vector<float> ones(head.n, 1);
  kernels::DeltaHead undecayed = head;
  for (std::size_t t = 0; t < head.n; ++t) {  // a token a call: decay has the stride of beta
    undecayed.n = 1;
    undecayed.decay = ones.data();
    kernels::table(kernels::Isa::scalar)->delta_net(undecayed, rows);
    undecayed.q += head.stride;
    undecayed.k += head.stride;
    undecayed.v += head.stride;
    undecayed.beta += head.gate_stride;
    undecayed.out += head.out_stride;
  }
}

void taps_in_reverse(const kernels::CausalConv& conv, std::size_t first,
                     std::size_t last) noexcept {
  std::vector<float> weights(4 * last);
  for (std::size_t i = 0; i < 4; ++i) {
    std::copy_n(conv.weights + (3 - i) * conv.weight_stride, last, weights.data() + i * last);
  }
  kernels::CausalConv reversed = conv;
  reversed.weights = weights.data();
  reversed.weight_stride = last;
  kernels::table(kernels::Isa::scalar)->causal_conv(reversed, first, last);
}

void norm_without_scale(const float* x, std::size_t n, float eps, float, float* y) noexcept {
  kernels::table(kernels::Isa::scalar)->l2_norm(x, n, eps, 1, y);
}

void no_gate(const float*, const float* x, std::size_t n, float* y) noexcept {
  std::copy_n(x, n, y);
}

TEST(F32BoundTest, PlantedDefectsOfTheHybridExceedIt) {
  const std::string file = "qwen35_three.gguf";
  const test::Golden golden = test::read_golden(file);
  const Model model = open_model(file);
  const kernels::Kernels good = *kernels::table(kernels::supported_isas().back());
  kernels::Kernels decay = good, conv = good, norm = good, gate = good;
  decay.delta_net = forget_nothing;
  conv.causal_conv = taps_in_reverse;
  norm.l2_norm = norm_without_scale;
  gate.sigmoid_mul = no_gate;
  for (const kernels::Kernels* bad : {&decay, &conv, &norm, &gate}) {
    EXPECT_GT(worst_error(model, golden, Activations::f32, {.kernels = bad}), 1e-4);
  }
}

// 1e-4: rounding to f32 in two layers stays under 1e-5 (each of some 20 roundings on the path is
// 6e-8, sums of up to 3000 terms add a factor of about 10), while one wrong weight in a matrix of
// 128 columns moves a logit by 1e-3 and more.
TEST_P(ModelTest, F32PathGivesTheGoldenLogits) {
  const test::Golden golden = test::read_golden(GetParam());
  for (const bool t2 : {false, true}) {
    EXPECT_LE(worst_error(open_model(GetParam(), t2), golden, Activations::f32), 1e-4);
  }
}

// The int8 path against the golden logits. Rounding a group of 128 to a step of a / 127, a its
// largest value, adds noise of a / (127 sqrt(12)); a is about 2.7 times the rms of such a group, so
// each rounding adds 0.6 % of a projection's input. A path through L layers meets four of them a
// layer and one at the head: 0.6 % * sqrt(4 L + 1), 1.9 % of the logits' rms for L = 2. The largest
// of 19 x 333 such differences is about 4 deviations, the largest logit about 3 times their rms:
// 2.5 % in the metric, and twice that leaves room for groups with larger peaks and for the gain of
// softmax and SiLU.
constexpr double kInt8Bound = 0.05;
// A layer of gated DeltaNet multiplies q, v, the gate of z and k twice (in what it writes and in
// what it corrects), each with the noise of its projection: 1 + 1 + 1 + 2^2 in squares, where
// attention has 1, and 1.4 times that as SiLU makes relative noise a fifth larger. So sqrt(13 L +
// 1): 3.1 % of the logits' rms for L = 2, and by the same steps 8.3 %.
constexpr double kHybridInt8Bound = 0.083;
double int8_bound(const std::string& file) {
  return file.starts_with("qwen35") ? kHybridInt8Bound : kInt8Bound;
}

TEST_P(ModelTest, Int8PathStaysWithinItsRounding) {
  const test::Golden golden = test::read_golden(GetParam());
  const Model model = open_model(GetParam());
  EXPECT_LE(worst_error(model, golden, Activations::int8), int8_bound(GetParam()));
}

// Defects that the bound must notice, planted in the kernel table.
const kernels::Kernels& scalar() { return *kernels::table(kernels::Isa::scalar); }

bool rotate_to_4_bits(const float* x, const std::uint32_t* signs, std::size_t count,
                      std::size_t block, float* y, std::size_t padded,
                      const kernels::Q8Column& out) noexcept {
  const bool finite = scalar().rotate_quantize(x, signs, count, block, y, padded, out);
  for (std::size_t g = 0; g < padded / 128; ++g) {
    out.sum[g] = 0;
    for (std::size_t i = 128 * g; i < 128 * (g + 1); ++i) {
      out.q[i] = static_cast<std::int8_t>(out.q[i] / 16 * 16);
      out.sum[g] += out.q[i];
    }
  }
  return finite;
}

bool forget_the_last_group(const float* x, const std::uint32_t* signs, std::size_t count,
                           std::size_t block, float* y, std::size_t padded,
                           const kernels::Q8Column& out) noexcept {
  const bool finite = scalar().rotate_quantize(x, signs, count, block, y, padded, out);
  out.scale[padded / 128 - 1] = 0;
  return finite;
}

bool rotate_without_signs(const float* x, const std::uint32_t*, std::size_t count,
                          std::size_t block, float* y, std::size_t padded,
                          const kernels::Q8Column& out) noexcept {
  return scalar().rotate_quantize(x, nullptr, count, block, y, padded, out);
}

TEST(Int8BoundTest, PlantedDefectsExceedIt) {
  for (const std::string file : {"qwen3_rot128_wide.ptq1_0.gguf", "qwen35_rot128.ptq1_0.gguf"}) {
    const test::Golden golden = test::read_golden(file);
    const Model model = open_model(file);
    const kernels::Kernels good = *kernels::table(kernels::supported_isas().back());
    kernels::Kernels bits = good, group = good, signs = good;
    bits.rotate_quantize = rotate_to_4_bits;
    group.rotate_quantize = forget_the_last_group;
    signs.rotate_quantize = rotate_without_signs;
    for (const kernels::Kernels* bad : {&bits, &group, &signs}) {
      EXPECT_GT(worst_error(model, golden, Activations::int8, {.kernels = bad}), int8_bound(file));
    }
  }
}

TEST_P(ModelTest, EveryLevelGivesTheSameBits) {
  const test::Golden golden = test::read_golden(GetParam());
  const std::vector<Token>& tokens = golden.prompts[6].tokens;
  for (const bool t2 : {false, true}) {
    const Model model = open_model(GetParam(), t2);
    for (const Activations activations : {Activations::int8, Activations::f32}) {
      std::vector<float> expected;
      for (const SessionHooks& hooks : every_level()) {
        const std::vector<float> logits = run(model, tokens, activations, hooks);
        if (expected.empty()) expected = logits;
        EXPECT_EQ(logits, expected) << kernels::isa_name(hooks.kernels->isa);
      }
    }
  }
}

TEST_P(ModelTest, ThreadsAndSplitsGiveTheSameBits) {
  // The long prompt, more than one batch, for one model of each architecture.
  const bool is_long = GetParam() == "qwen3_rot64.ptq1_0.gguf" ||
                       GetParam() == "llama_tq.tq1_0.gguf" ||
                       GetParam() == "qwen35_rot128.ptq1_0.gguf";
  const test::Golden golden = test::read_golden(GetParam());
  const std::vector<Token>& tokens = golden.prompts[is_long ? 7 : 6].tokens;
  const Model model = open_model(GetParam());
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    const std::vector<float> expected = run(model, tokens, activations, {.threads = 1});
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(run(model, tokens, activations, {.threads = threads}), expected) << threads;
    }
    for (const std::size_t piece : {1, 9, 64, 65, 300}) {
      EXPECT_EQ(run(model, tokens, activations, {.threads = 2}, piece), expected) << piece;
    }
  }
}

TEST_P(ModelTest, EncodingsGiveTheSameBits) {
  const test::Golden golden = test::read_golden(GetParam());
  const std::vector<Token>& tokens = golden.prompts[6].tokens;
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    EXPECT_EQ(run(open_model(GetParam(), false), tokens, activations),
              run(open_model(GetParam(), true), tokens, activations));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, ModelTest, testing::ValuesIn(test::all_models()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(LoaderTest, TakesAnOrderThatTheProbesConfirm) {
  const std::filesystem::path rotated = test::converted("qwen3_rot64.ptq1_0.gguf");
  EXPECT_TRUE(Loader().with_hadamard_order(6).load(rotated));
  for (const auto& [order, message] :
       {std::pair(7, "the probe says"), std::pair(5, "the probe says"),
        std::pair(3, "expected 4 to 14"), std::pair(15, "expected 4 to 14"),
        std::pair(14, "expected a multiple of the block of 16384")}) {
    const auto refused = Loader().with_hadamard_order(order).load(rotated);
    ASSERT_FALSE(refused) << order;
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().message().find(message), std::string::npos)
        << refused.error().message();
  }
  const auto plain = Loader().with_hadamard_order(6).load(test::converted("llama_tq.tq1_0.gguf"));
  ASSERT_FALSE(plain);
  EXPECT_NE(plain.error().message().find("are not rotated"), std::string::npos);
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() : model_(open_model("qwen3_rot64.ptq1_0.gguf")) {}
  Model model_;
  const std::vector<Token> tokens_ = {5, 17, 101, 3, 260};
};

TEST_F(SessionTest, RewindsToAnyPosition) {
  Session session = make_session(model_, Activations::int8);
  const auto first = session.append(tokens_);
  ASSERT_TRUE(first);
  const std::vector<float> expected(first->begin(), first->end());
  const std::vector<Token> other = {9, 9, 9};
  ASSERT_TRUE(session.rewind(2));
  ASSERT_TRUE(session.append(other));
  ASSERT_TRUE(session.rewind(2));
  const auto again = session.append(std::span(tokens_).subspan(2));
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::ranges::equal(*again, expected));
  EXPECT_EQ(session.position(), 5);
  EXPECT_EQ(session.rewind(6).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(session.rewind(-1).error().code(), ErrorCode::invalid_argument);
}

TEST_F(SessionTest, SnapshotsBringBackWhatWasRead) {
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    Session session = make_session(model_, activations);
    const std::vector<Token> other = {9, 9, 9, 9};
    ASSERT_TRUE(session.append(std::span(tokens_).first(4)));
    const auto snapshot = session.snapshot();
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->position(), 4);
    EXPECT_EQ(snapshot->memory_bytes(),
              4 * model_.kv_bytes_per_token(activations == Activations::f32));
    const auto first = session.append(std::span(tokens_).last(1));
    ASSERT_TRUE(first);
    const std::vector<float> expected(first->begin(), first->end());

    auto another = Session::create(model_, {.context = 5, .activations = activations});
    ASSERT_TRUE(another);
    ASSERT_TRUE(another->append(std::span(other).first(2)));
    ASSERT_TRUE(session.rewind(0));
    ASSERT_TRUE(session.append(other));
    for (Session* s : {&session, &*another, &session}) {
      ASSERT_TRUE(s->restore(*snapshot));
      EXPECT_EQ(s->position(), 4);
      const auto again = s->append(std::span(tokens_).last(1));
      ASSERT_TRUE(again);
      EXPECT_TRUE(std::ranges::equal(*again, expected));
    }
  }
}

TEST_F(SessionTest, RefusesSnapshotsOfOthers) {
  Session session = make_session(model_, Activations::int8);
  ASSERT_TRUE(session.append(tokens_));
  const auto snapshot = session.snapshot();
  ASSERT_TRUE(snapshot);
  const auto refusal = [&](Session& s, std::int32_t position) {
    const auto restored = s.restore(*snapshot);
    EXPECT_EQ(s.position(), position);
    return restored ? "" : restored.error().message();
  };
  const Model twin = open_model("qwen3_rot64.ptq1_0.gguf");
  Session of_twin = make_session(twin, Activations::int8);
  EXPECT_EQ(refusal(of_twin, 0),
            "the snapshot is of a session of another model, expected one of this");
  Session f32 = make_session(model_, Activations::f32);
  EXPECT_EQ(refusal(f32, 0),
            "the snapshot is of a session with other activations, expected the same");
  auto small = Session::create(model_, {.context = 4});
  ASSERT_TRUE(small);
  ASSERT_TRUE(small->append(std::span(tokens_).first(1)));
  EXPECT_EQ(refusal(*small, 1), "the snapshot holds 5 tokens, the context of this session 4");
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  auto session = Session::create(model_, {.context = 4});
  ASSERT_TRUE(session);
  const auto tooMany = session->append(tokens_);
  ASSERT_FALSE(tooMany);
  EXPECT_EQ(tooMany.error().code(), ErrorCode::out_of_context);
  EXPECT_EQ(tooMany.error().message(), "5 tokens do not fit: the context holds 4 and 0 are in it");
  EXPECT_EQ(session->position(), 0);
  ASSERT_TRUE(session->append(std::span(tokens_).first(4)));
  EXPECT_EQ(session->append(std::span(tokens_).first(1)).error().code(), ErrorCode::out_of_context);
  EXPECT_EQ(session->position(), 4);
}

TEST_F(SessionTest, RefusesBadTokensAndOptions) {
  Session session = make_session(model_, Activations::int8);
  EXPECT_EQ(session.append({}).error().code(), ErrorCode::invalid_argument);
  for (const Token bad : {-1, model_.vocab_size()}) {
    const std::vector<Token> tokens = {1, bad};
    EXPECT_EQ(session.append(tokens).error().message(),
              "token 1 has the id " + std::to_string(bad) + ", expected 0 to 332");
  }
  EXPECT_EQ(Session::create(model_, {.context = -1}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(Session::create(model_, {.threads = -1}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(Session::create(model_, {.context = (1 << 24) + 1}).error().code(),
            ErrorCode::invalid_argument);
}

TEST_F(SessionTest, TakesWhatItPlanned) {
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    for (const std::int32_t context : {1, 16, 512, 700}) {
      const SessionOptions options = {.context = context, .activations = activations};
      const auto plan = Session::plan(model_, options);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->context, context);
      EXPECT_EQ(plan->weight_bytes, model_.file_bytes());
      EXPECT_EQ(plan->kv_bytes_per_token,
                model_.kv_bytes_per_token(activations == Activations::f32));
      EXPECT_EQ(plan->kv_bytes, static_cast<std::uint64_t>(context) * plan->kv_bytes_per_token);
      auto session = Session::create(model_, options);
      ASSERT_TRUE(session);
      ASSERT_TRUE(session->append(std::vector<Token>(static_cast<std::size_t>(context), 7)));
      EXPECT_EQ(session->memory_bytes(), plan->kv_bytes + plan->scratch_bytes) << context;
    }
  }
}

TEST_F(SessionTest, PlansItsContextByTheMemory) {
  const auto bytes_for = [&](std::int32_t context) {
    const auto plan = Session::plan(model_, {.context = context});
    return plan->kv_bytes + plan->scratch_bytes;
  };
  for (const std::int32_t largest : {1, 2, 180, 511, 512, 513, 1000}) {
    // The least memory of which nine tenths hold it.
    const SessionHooks just = {.memory = (bytes_for(largest) + 8) / 9 * 10};
    const auto vast = create_session(model_, {.context = largest + 1}, just);
    ASSERT_FALSE(vast) << largest;
    EXPECT_EQ(vast.error().code(), ErrorCode::out_of_memory);
    EXPECT_NE(vast.error().message().find("at most " + std::to_string(largest) + " tokens fit"),
              std::string::npos)
        << vast.error().message();
    EXPECT_TRUE(create_session(model_, {.context = largest}, just));
    const auto automatic = create_session(model_, {}, just);
    ASSERT_TRUE(automatic);
    EXPECT_EQ(automatic->context(), largest);
    EXPECT_EQ(plan_memory(model_, {}, just.memory)->largest_context, largest);
  }
  const auto none = create_session(model_, {}, {.memory = 1000});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("at most 0 tokens fit"), std::string::npos);
}

TEST_F(SessionTest, CancelledPromptsLeaveNothing) {
  const std::vector<Token> prompt(600, 7);  // two batches
  Session session = make_session(model_, Activations::int8);
  int calls = 0;
  const auto stopped = session.append(prompt, Logits::last, [&](std::int32_t done, std::int32_t) {
    ++calls;
    return done == 0;
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::cancelled);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(session.position(), 0);
  const auto after = session.append(tokens_);
  ASSERT_TRUE(after);
  Session fresh = make_session(model_, Activations::int8);
  const auto expected = fresh.append(tokens_);
  ASSERT_TRUE(expected);
  EXPECT_TRUE(std::ranges::equal(*after, *expected));
}

void norm_to_infinity(const float*, const float*, std::size_t n, float, float* y) noexcept {
  std::fill_n(y, n, INFINITY);
}

TEST_F(SessionTest, NamesTheLayerOfAnInfiniteActivation) {
  kernels::Kernels bad = *kernels::table(kernels::Isa::scalar);
  bad.rms_norm = norm_to_infinity;
  Session int8 = make_session(model_, Activations::int8, {.kernels = &bad});
  const auto failed = int8.append(tokens_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::numeric);
  EXPECT_EQ(
      failed.error().message(),
      "blk.0.attn_q.weight: an activation of token 0 of the batch is infinite or not a number");
  EXPECT_EQ(int8.position(), 0);
  Session f32 = make_session(model_, Activations::f32, {.kernels = &bad});
  EXPECT_EQ(f32.append(tokens_).error().message(), failed.error().message());
}

TEST_F(SessionTest, ManySessionsShareAModel) {
  Session a = make_session(model_, Activations::int8), b = make_session(model_, Activations::int8);
  const std::vector<Token> other = {300, 2};
  const auto logits_a = a.append(tokens_);
  ASSERT_TRUE(logits_a);
  const std::vector<float> expected(logits_a->begin(), logits_a->end());
  ASSERT_TRUE(b.append(other));
  ASSERT_TRUE(b.rewind(0));
  const auto logits_b = b.append(tokens_);
  ASSERT_TRUE(logits_b);
  EXPECT_TRUE(std::ranges::equal(*logits_b, expected));
}

}  // namespace
}  // namespace tsq
