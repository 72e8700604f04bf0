// Hugging Face folders that transformers wrote, converted whole. The folders of data/models are
// models like the GGUF files there, and take part in the tests of model_test.cpp.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "convert/convert.h"
#include "format/reader.h"
#include "models.h"
#include "temporary_folder.h"
#include "tsq/loader.h"
#include "tsq/session.h"

namespace tsq {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(TSQ_TEST_DATA) / "models";

// linear_class bitlinear: y is divided by weight_scale. Its scales are powers of two, so that the
// reciprocals are exact. The bound is that of model_test.cpp.
TEST(HfModelTest, ScalesThatDivideGiveTheGoldenLogits) {
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "model", target = folder.path() / "model.tsq";
  fs::copy(kModels / "hf_bitnet", copy, fs::copy_options::recursive);
  std::ifstream in(copy / "config.json");
  std::string config(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = config.find("autobitlinear");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(copy / "config.json") << config.erase(at, 4);

  const auto made = convert::convert({&copy, 1}, target);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_GT(made->ternary_weights, 0u);
  const auto model = Loader().load(target);
  ASSERT_TRUE(model) << model.error().message();
  const test::Golden golden = test::read_golden("hf_bitnet_divided");
  for (const test::GoldenPrompt& prompt : golden.prompts) {
    auto session = Session::create(*model, {.activations = Activations::f32});
    ASSERT_TRUE(session) << session.error().message();
    const auto logits = session->append(prompt.tokens, Logits::all);
    ASSERT_TRUE(logits) << logits.error().message();
    for (std::size_t k = 0; k < prompt.positions.size(); ++k) {
      EXPECT_LE(test::logit_error(logits->data() + prompt.positions[k] * golden.vocab,
                                  golden.row(prompt.row + k), golden.vocab),
                1e-4);
    }
  }
}

TEST(HfModelTest, TheTokenizerOfTheFolderComesAlong) {
  const Model model = test::open_model("hf_llama");
  ASSERT_NE(model.tokenizer(), nullptr);
  EXPECT_EQ(model.tokenizer()->vocab_size(), 333);
  EXPECT_TRUE(model.tokenizer()->adds_bos());
  EXPECT_EQ(model.tokenizer()->bos(), 0);
  EXPECT_EQ(model.tokenizer()->eos(), 2);
  for (const Token end : {0, 1, 2}) EXPECT_TRUE(model.tokenizer()->is_end(end)) << end;
  const auto file = format::open(test::converted("hf_llama"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->file.metadata().find("tokenizer.chat_template")->as_string(), "{{ messages }}");
  EXPECT_EQ(file->file.header().model_name, "hf_llama");
}

}  // namespace
}  // namespace tsq
