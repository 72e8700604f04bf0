// The model that ships: its first greedy tokens at every CPU level, against the numpy forward pass
// of models/recipe/forward.py. numpy's int8 path is not tsq's to the bit, so the prompt was chosen
// as one on which the two agree: after "Once upon a time" they part at the 30th token.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/session_hooks.h"
#include "kernels/dispatch.h"
#include "tsq/loader.h"

namespace tsq {
namespace {

std::vector<Token> greedy(const Model& model, const std::vector<Token>& prompt, std::size_t n,
                          Activations activations, const kernels::Kernels* level) {
  auto session = create_session(model, {.activations = activations}, {.kernels = level});
  EXPECT_TRUE(session);
  std::vector<Token> tokens;
  auto logits = session->append(prompt);
  while (logits && tokens.size() < n) {
    tokens.push_back(static_cast<Token>(std::ranges::max_element(*logits) - logits->begin()));
    logits = session->append({&tokens.back(), 1});
  }
  return tokens;
}

TEST(FairyTalesTest, BeginsAsItsRecipeSays) {
  const auto model = Loader().load(TSQ_MODELS "/fairy-tales.tsq");
  ASSERT_TRUE(model) << model.error().message();
  std::ifstream in(TSQ_TEST_DATA "/fairy-tales.json");
  const auto golden = nlohmann::json::parse(in);
  const auto prompt = model->tokenizer()->encode(golden.at("prompt").get<std::string>());
  ASSERT_TRUE(prompt);
  EXPECT_EQ(*prompt, golden.at("prompt_tokens").get<std::vector<Token>>());
  for (const kernels::Isa isa : kernels::supported_isas()) {
    for (const auto& [activations, name] :
         {std::pair(Activations::int8, "int8"), std::pair(Activations::f32, "f32")}) {
      const auto expected = golden.at(name).get<std::vector<Token>>();
      EXPECT_EQ(expected.size(), 32u);
      EXPECT_EQ(greedy(*model, *prompt, expected.size(), activations, kernels::table(isa)),
                expected)
          << name << " on " << kernels::isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace tsq
