// The sampler against tests/reference/sampler.py, and its limits.
#include "tsq/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace tsq {
namespace {

Sampler make(std::size_t vocab_size, const SamplerOptions& options) {
  auto sampler = Sampler::create(static_cast<std::int32_t>(vocab_size), options);
  if (!sampler) {
    ADD_FAILURE() << sampler.error().message();
    std::abort();
  }
  return std::move(*sampler);
}

TEST(SamplerTest, DrawsWhatTheDefinitionDraws) {
  std::ifstream in(TSQ_TEST_DATA "/sampler.json");
  const auto golden = nlohmann::json::parse(in);
  const std::vector<float> logits = golden.at("logits");
  for (const auto& c : golden.at("cases")) {
    Sampler sampler = make(logits.size(), {.temperature = c.at("temperature"),
                                           .top_k = c.at("top_k"),
                                           .top_p = c.at("top_p"),
                                           .min_p = c.at("min_p"),
                                           .repeat_penalty = c.at("repeat_penalty"),
                                           .repeat_last_n = c.at("repeat_last_n"),
                                           .seed = std::stoull(c.at("seed").get<std::string>())});
    std::vector<Token> drawn;
    for (std::size_t i = 0; i < c.at("tokens").size(); ++i) {
      drawn.push_back(sampler.sample(logits));
      sampler.accept(drawn.back());
    }
    EXPECT_EQ(drawn, c.at("tokens").get<std::vector<Token>>()) << c;
  }
}

TEST(SamplerTest, GreedyTakesTheLowestIdAmongEquals) {
  EXPECT_EQ(make(4, {.temperature = 0}).sample(std::vector<float>{1, 3, 2, 3}), 1);
  EXPECT_EQ(make(1, {.temperature = 0}).sample(std::vector<float>{-5}), 0);
}

TEST(SamplerTest, FollowsTheProbabilities) {
  // Odds of 1 : 2 : 4 : 8. 15,000 draws: five standard deviations of the rarest count are 153.
  const std::vector<float> logits = {0, std::log(2.0f), std::log(4.0f), std::log(8.0f)};
  Sampler sampler = make(4, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 11});
  std::vector<int> counts(4);
  for (int i = 0; i < 15000; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits))];
  const int expected[] = {1000, 2000, 4000, 8000};
  const double deviations[] = {30.6, 41.6, 54.2, 61.1};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], expected[i], 5 * deviations[i]) << i;
}

TEST(SamplerTest, RefusesOptionsByName) {
  const auto message = [](const SamplerOptions& options) {
    const auto sampler = Sampler::create(4, options);
    EXPECT_FALSE(sampler);
    if (sampler) return std::string();
    EXPECT_EQ(sampler.error().code(), ErrorCode::invalid_argument);
    return sampler.error().message();
  };
  EXPECT_EQ(message({.temperature = -1}), "temperature is -1, expected 0 (greedy) to 100");
  EXPECT_EQ(message({.temperature = NAN}), "temperature is nan, expected 0 (greedy) to 100");
  EXPECT_EQ(message({.top_k = -1}), "top-k is -1, expected 1 or more (0: all)");
  EXPECT_EQ(message({.top_p = 0}), "top-p is 0, expected above 0, up to 1 (all)");
  EXPECT_EQ(message({.top_p = 1.5}), "top-p is 1.5, expected above 0, up to 1 (all)");
  EXPECT_EQ(message({.min_p = 2}), "min-p is 2, expected 0 (all) to 1");
  EXPECT_EQ(message({.repeat_penalty = 0}),
            "repeat-penalty is 0, expected above 0, up to 100 (1: none)");
  EXPECT_EQ(message({.repeat_last_n = -1}), "repeat-last-n is -1, expected 0 to 2^24");
  EXPECT_FALSE(Sampler::create(0));
}

TEST(SamplerTest, IgnoresIdsOutsideTheVocabulary) {
  Sampler sampler = make(2, {.temperature = 0, .repeat_penalty = 10});
  for (const Token token : {-1, 2, 1 << 30}) sampler.accept(token);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2}), 1);
  sampler.accept(1);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2}), 0);
}

}  // namespace
}  // namespace tsq
