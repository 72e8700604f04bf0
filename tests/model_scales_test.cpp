// Whole models whose activations are quantised per token, for all of their weights or for some.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "engine/session_hooks.h"
#include "format/reader.h"
#include "format_files.h"
#include "kernels/dispatch.h"
#include "models.h"
#include "temporary_folder.h"
#include "tsq/loader.h"

namespace tsq {
namespace {

using format::TensorRecord;

const std::vector<Token> kTokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

// The model converted, with activations per token for the ternary tensors that are `chosen`.
class PerToken {
 public:
  PerToken(const std::string& file, const std::function<bool(const TensorRecord&)>& chosen) {
    format::Bytes bytes = format::read_file(test::converted(file));
    {
      const auto parsed = format::File::parse(bytes.span());
      EXPECT_TRUE(parsed);
      for (std::size_t i = 0; i < parsed->tensors().size(); ++i) {
        const TensorRecord& tensor = parsed->tensors()[i];
        if (!format::is_ternary(tensor.encoding) || !chosen(tensor)) continue;
        format::put(bytes, format::record_at(bytes, i, 60), format::ActivationQuant::per_token);
      }
    }
    bytes.data()[72] |= std::byte{1 << 4};
    format::sign(bytes);
    format::write_bytes(folder_.path() / "model.tsq", bytes.span());
    auto model = Loader().load(folder_.path() / "model.tsq");
    EXPECT_TRUE(model) << (model ? "" : model.error().message());
    if (model) model_.emplace(std::move(*model));
  }
  const Model& model() const { return *model_; }

 private:
  TemporaryFolder folder_;
  std::optional<Model> model_;
};

std::vector<float> logits(const Model& model, Activations activations, const SessionHooks& hooks,
                          std::size_t piece = kTokens.size()) {
  auto session = create_session(model, {.activations = activations}, hooks);
  EXPECT_TRUE(session);
  std::vector<float> all;
  for (std::size_t i = 0; i < kTokens.size(); i += piece) {
    const auto part = std::span(kTokens).subspan(i, std::min(piece, kTokens.size() - i));
    const auto got = session->append(part, Logits::all);
    EXPECT_TRUE(got);
    all.insert(all.end(), got->begin(), got->end());
  }
  return all;
}

class PerTokenModel : public testing::TestWithParam<const char*> {};

TEST_P(PerTokenModel, GivesTheSameBitsEverywhere) {
  const PerToken file(GetParam(), [](const TensorRecord&) { return true; });
  const auto expected = logits(file.model(), Activations::int8,
                               {.kernels = kernels::table(kernels::Isa::scalar), .threads = 1});
  for (const kernels::Isa isa : kernels::supported_isas()) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, kTokens.size()}) {
      EXPECT_EQ(logits(file.model(), Activations::int8,
                       {.kernels = kernels::table(isa), .threads = 2}, piece),
                expected)
          << kernels::isa_name(isa) << ", pieces of " << piece;
    }
  }
  EXPECT_NE(logits(test::open_model(GetParam()), Activations::int8, {}), expected);
  // The f32 path quantises nothing.
  EXPECT_EQ(logits(file.model(), Activations::f32, {}),
            logits(test::open_model(GetParam()), Activations::f32, {}));
}

INSTANTIATE_TEST_SUITE_P(Every, PerTokenModel,
                         testing::Values("llama_tensor_scale.i2_s.gguf",
                                         "llama_half_groups.q2_0.gguf", "qwen3_rot64.ptq1_0.gguf"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

// Of q, k and v, which read one activation, k alone per token: each gets what it would get alone.
TEST(MixedGroup, EachWeightGetsItsOwnActivations) {
  const std::string name = "llama_tensor_scale.i2_s.gguf";
  using Outputs = std::map<std::string, std::vector<float>>;  // of the first layer's q, k and v
  const auto traced = [](const Model& model) {
    Outputs outputs;
    SessionHooks hooks;
    hooks.observer = [&](const ProjectionTrace& trace) {
      const std::string& weight = trace.weight->name;
      if (!weight.starts_with("blk.0.attn_") || weight.find("output") != weight.npos) return;
      outputs[weight].assign(trace.y.begin(), trace.y.end());
      outputs[weight].push_back(trace.token_scale.empty() ? 0.0f : 1.0f);
    };
    logits(model, Activations::int8, hooks);
    return outputs;
  };
  const PerToken all(name, [](const TensorRecord&) { return true; });
  const PerToken mixed(name, [](const TensorRecord& t) { return t.name == "blk.0.attn_k.weight"; });
  const Outputs per_group = traced(test::open_model(name)), per_token = traced(all.model()),
                got = traced(mixed.model());
  ASSERT_EQ(got.size(), 3u);
  for (const auto& [weight, y] : got) {
    const bool token = weight == "blk.0.attn_k.weight";
    EXPECT_EQ(y, (token ? per_token : per_group).at(weight)) << weight;
    EXPECT_NE(y, (token ? per_group : per_token).at(weight)) << weight;
  }
}

}  // namespace
}  // namespace tsq
