// Models whose weights are repacked at load: the same bits, in memory that was there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/load_hooks.h"
#include "engine/session_hooks.h"
#include "kernels/dispatch.h"
#include "models.h"
#include "tsq/loader.h"

namespace tsq {
namespace {

const std::vector<Token> kTokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

// A prompt of several tokens, then one by one.
std::vector<float> logits(const Model& model, Activations activations, const SessionHooks& hooks) {
  auto session = create_session(model, {.activations = activations}, hooks);
  EXPECT_TRUE(session);
  std::vector<float> all;
  for (std::size_t i = 0; i < kTokens.size(); i += i == 0 ? 7 : 1) {
    const auto part = std::span(kTokens).subspan(i, i == 0 ? 7 : 1);
    const auto got = session->append(part, Logits::all);
    EXPECT_TRUE(got);
    all.insert(all.end(), got->begin(), got->end());
  }
  return all;
}

Model load(const std::string& file, const LoaderOptions& options, const LoadHooks& hooks) {
  auto model = load_model(test::converted(file), options, hooks);
  if (!model) {
    ADD_FAILURE() << model.error().message();
    std::abort();
  }
  return std::move(*model);
}

// Forms that a level does not prefer, so that each is tried at each level that has its kernel.
kernels::Kernels preferring(const kernels::Kernels& level, kernels::PackedForm t1) {
  kernels::Kernels k = level;
  k.t1_best = t1;
  return k;
}

class RepackTest : public testing::TestWithParam<std::string> {};

TEST_P(RepackTest, GivesTheSameBits) {
  const Model plain = test::open_model(GetParam());
  EXPECT_EQ(plain.repacked().tensors, 0u);
  const auto expected = logits(plain, Activations::int8, {.threads = 1});
  for (const auto form : {kernels::PackedForm::t2, kernels::PackedForm::t1_escape}) {
    for (const kernels::Isa isa : kernels::supported_isas()) {
      const kernels::Kernels level = preferring(*kernels::table(isa), form);
      for (const int threads : {1, 3}) {
        const Model model =
            load(GetParam(), {.repack = Repack::automatic, .threads = threads}, {&level});
        EXPECT_EQ(logits(model, Activations::int8, {.kernels = &level, .threads = threads}),
                  expected)
            << kernels::isa_name(isa) << ", " << threads << " threads";
      }
    }
  }
  const Model t2 = load(GetParam(), {.repack = Repack::t2}, {});
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    EXPECT_EQ(logits(t2, activations, {.threads = 2}), logits(plain, activations, {.threads = 2}));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, RepackTest, testing::ValuesIn(test::all_models()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

const std::string kFile = "qwen3_rot64.ptq1_0.gguf";

TEST(RepackOptions, ChooseForEachTensor) {
  std::vector<std::string> names;
  LoaderOptions options = {.repack = Repack::t2};
  options.on_layer_loaded = [&](std::string_view name, TensorOptions& tensor) {
    EXPECT_EQ(tensor.repack(), Repack::t2);
    names.emplace_back(name);
    if (name != "blk.0.ffn_up.weight") tensor.set_repack(Repack::none);
  };
  const Model one = load(kFile, options, {});
  EXPECT_EQ(one.repacked().tensors, 1u);
  EXPECT_EQ(std::ranges::count(names, "blk.0.ffn_up.weight"), 1);
  EXPECT_EQ(std::ranges::count(names, "blk.0.attn_norm.weight"), 0);
  const Model all = load(kFile, {.repack = Repack::t2}, {});
  EXPECT_GT(all.repacked().tensors, 1u);
  // 2.125 bits for at least 1.725 (super-blocks that are not full take more).
  EXPECT_GT(all.repacked().bytes, all.repacked().file_bytes);
  EXPECT_LE(all.repacked().bytes * 1725, all.repacked().file_bytes * 2125);
}

TEST(RepackOptions, TakeNoMoreMemoryThanThereIs) {
  const std::uint64_t bytes = load(kFile, {.repack = Repack::t2}, {}).repacked().bytes;
  const std::uint64_t enough = (bytes + 8) / 9 * 10;
  EXPECT_EQ(load(kFile, {.repack = Repack::t2}, {.memory = enough}).repacked().bytes, bytes);
  const auto refused = load_model(test::converted(kFile), {.repack = Repack::t2}, {.memory = 1000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::out_of_memory);
  EXPECT_NE(refused.error().message().find("GB more are needed"), std::string::npos)
      << refused.error().message();

  // Automatic takes what fits into a half, and runs.
  const kernels::Kernels level =
      preferring(*kernels::table(kernels::Isa::scalar), kernels::PackedForm::t2);
  const Model part =
      load(kFile, {.repack = Repack::automatic}, {.kernels = &level, .memory = bytes});
  EXPECT_GT(part.repacked().bytes, 0u);
  EXPECT_LE(part.repacked().bytes, bytes / 2);
  EXPECT_EQ(logits(part, Activations::int8, {}),
            logits(test::open_model(kFile), Activations::int8, {}));
}

TEST(RepackOptions, TellProgressAndStop) {
  std::vector<std::uint64_t> seen;
  LoaderOptions options = {.repack = Repack::t2};
  options.on_repack = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_LE(done, total);
    seen.push_back(done);
    return true;
  };
  const Model model = load(kFile, options, {});
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), model.repacked().bytes);
  options.on_repack = [](std::uint64_t, std::uint64_t) { return false; };
  const auto stopped = load_model(test::converted(kFile), options, {});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::cancelled);
}

TEST(RepackOptions, LoaderPassesThemOn) {
  int calls = 0;
  const auto model = Loader()
                         .with_repack(Repack::t2)
                         .with_threads(2)
                         .on_layer_loaded([&](std::string_view, TensorOptions&) { ++calls; })
                         .on_repack([](std::uint64_t, std::uint64_t) { return true; })
                         .load(test::converted(kFile));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_GT(calls, 0);
  EXPECT_GT(model->repacked().bytes, 0u);
  EXPECT_FALSE(Loader().with_repack(Repack::t2).with_threads(-1).load(test::converted(kFile)));
}

}  // namespace
}  // namespace tsq
