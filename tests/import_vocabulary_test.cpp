// The tokenizer keys of a GGUF as a vocabulary.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <limits>

#include "gguf_builder.h"
#include "import/gguf.h"

namespace tsq {
namespace {

using format::kNoToken;
using format::PreTokenizer;
using format::TokenType;
using gguf::GgufBuilder;

Result<importer::Checkpoint> parse(const std::vector<std::byte>& file) {
  const importer::Bytes parts[] = {file};
  return importer::parse_gguf(parts);
}

// Ġ is the space, Ċ the line feed in GPT-2's alphabet.
GgufBuilder sample() {
  GgufBuilder file;
  file.set("tokenizer.ggml.model", gguf::text("gpt2"));
  file.set("tokenizer.ggml.pre", gguf::text("smollm"));
  file.set("tokenizer.ggml.tokens", gguf::texts({"<|endoftext|>", "<|im_end|>", "a", "b", "Ġ", "Ċ",
                                                 "ab", "Ġab", "<think>Ġ", "<|eot_id|>"}));
  file.set("tokenizer.ggml.token_type", gguf::i32s({3, 3, 1, 1, 1, 1, 1, 1, 4, 1}));
  file.set("tokenizer.ggml.merges", gguf::texts({"a b", "Ġ ab", "b a", "x y", "ab", "Ġ Ċ"}));
  file.set("tokenizer.ggml.bos_token_id", gguf::u32(0));
  file.set("tokenizer.ggml.eos_token_id", gguf::u32(1));
  file.set("tokenizer.ggml.unknown_token_id", gguf::u32(0));
  file.set("tokenizer.ggml.padding_token_id", gguf::u32(9));
  file.set("tokenizer.ggml.add_bos_token", gguf::boolean(true));
  return file;
}

TEST(Vocabulary, HoldsBytesTypesMergesAndIds) {
  const auto file = sample().build();
  const auto checkpoint = parse(file);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  ASSERT_TRUE(checkpoint->vocabulary) << checkpoint->no_vocabulary;
  const auto& vocabulary = *checkpoint->vocabulary;
  EXPECT_EQ(vocabulary.pre_tokenizer, PreTokenizer::smollm);
  EXPECT_EQ(vocabulary.tokens,
            (std::vector<std::string>{"<|endoftext|>", "<|im_end|>", "a", "b", " ", "\n", "ab",
                                      " ab", "<think>Ġ", "<|eot_id|>"}));
  EXPECT_EQ(vocabulary.types[0], TokenType::control);
  EXPECT_EQ(vocabulary.types[8], TokenType::user_defined);
  EXPECT_EQ(vocabulary.types[9], TokenType::normal);
  ASSERT_EQ(vocabulary.merges.size(), 2u);
  EXPECT_EQ(vocabulary.merges[0].left, 2u);
  EXPECT_EQ(vocabulary.merges[0].right, 3u);
  EXPECT_EQ(vocabulary.merges[0].result, 6u);
  EXPECT_EQ(vocabulary.merges[1].left, 4u);
  EXPECT_EQ(vocabulary.merges[1].right, 6u);
  EXPECT_EQ(vocabulary.merges[1].result, 7u);
  EXPECT_EQ(checkpoint->dropped_merges, 4u);
  EXPECT_EQ(vocabulary.bos, 0u);
  EXPECT_EQ(vocabulary.eos, 1u);
  EXPECT_EQ(vocabulary.unknown, 0u);
  EXPECT_EQ(vocabulary.padding, 9u);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  // eos and <|endoftext|> by its text; <|eot_id|> is not a control token here.
  EXPECT_EQ(vocabulary.end_tokens, (std::vector<std::uint32_t>{0, 1}));
}

// A user-defined token is plain text: "Ġa" there is not the bytes that merging "Ġ" and "a" gives.
TEST(Vocabulary, MergesMakeTheBytesOfTheirResult) {
  auto file = sample();
  file.set("tokenizer.ggml.tokens",
           gguf::texts({"Ġa", "a", "b", "Ġ", "ab", "ab", "abb", "aĠ", "<|im_end|>", "<|im_end|>"}));
  file.set("tokenizer.ggml.token_type", gguf::i32s({4, 1, 1, 1, 4, 1, 3, 1, 1, 3}));
  file.set("tokenizer.ggml.merges", gguf::texts({"Ġ a", "a b", "a b", "ab b", "a Ġ"}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
  const auto& merges = checkpoint->vocabulary->merges;
  ASSERT_EQ(merges.size(), 3u);
  EXPECT_EQ(merges[0].result, 5u);  // the normal "ab", not the user-defined one
  EXPECT_EQ(merges[1].result, 6u);
  EXPECT_EQ(merges[2].result, 7u);
  EXPECT_EQ(checkpoint->dropped_merges, 2u);
  EXPECT_EQ(checkpoint->vocabulary->end_tokens, (std::vector<std::uint32_t>{1, 9}));
}

// Whatever the importer accepts, the section can hold.
TEST(Vocabulary, BuildsItsSection) {
  const auto file = sample().build();
  const auto checkpoint = parse(file);
  ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
  const auto section = format::build_tokenizer_section(*checkpoint->vocabulary);
  ASSERT_TRUE(section) << section.error().message();
  const auto view = format::TokenizerView::parse(*section, 10);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(view->find(" ab"), 7u);
}

// The stop set of llama.cpp for Qwen 3.5; some writers call those that end a file user-defined.
TEST(Vocabulary, TheEndsOfQwen35) {
  for (const int type : {3, 4}) {
    auto file = sample();
    file.set("tokenizer.ggml.pre", gguf::text("qwen35"));
    file.set("tokenizer.ggml.tokens",
             gguf::texts({"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>",
                          "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<think>", "</think>",
                          "<tool_call>"}));
    file.set("tokenizer.ggml.token_type", gguf::i32s({3, 3, 3, 3, type, type, type, 4, 4, 4}));
    file.set("tokenizer.ggml.merges", gguf::texts({}));
    file.set("tokenizer.ggml.eos_token_id", gguf::u32(2));
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
    EXPECT_EQ(checkpoint->vocabulary->end_tokens, (std::vector<std::uint32_t>{0, 2, 4, 5, 6}));
  }
}

TEST(Vocabulary, EndsOfTurnsCountOnce) {
  auto file = sample();
  file.set("tokenizer.ggml.eot_token_id", gguf::u32(9));
  file.set("tokenizer.ggml.eom_token_id", gguf::u32(1));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
  EXPECT_EQ(checkpoint->vocabulary->end_tokens, (std::vector<std::uint32_t>{0, 1, 9}));
}

TEST(Vocabulary, KnowsItsPreTokenizers) {
  for (const auto& [name, expected] :
       {std::pair{"gpt-2", PreTokenizer::gpt2}, std::pair{"gpt2", PreTokenizer::gpt2},
        std::pair{"smollm", PreTokenizer::smollm}, std::pair{"qwen2", PreTokenizer::qwen2},
        std::pair{"llama-bpe", PreTokenizer::llama_bpe},
        std::pair{"llama3", PreTokenizer::llama_bpe},
        std::pair{"llama-v3", PreTokenizer::llama_bpe},
        std::pair{"falcon3", PreTokenizer::llama_bpe},
        std::pair{"falcon_e", PreTokenizer::llama_bpe}, std::pair{"qwen35", PreTokenizer::qwen35},
        std::pair{"hunyuan", PreTokenizer::qwen2},
        std::pair{"hunyuan-dense", PreTokenizer::deepseek_v3},
        std::pair{"deepseek-v3", PreTokenizer::deepseek_v3},
        std::pair{"joyai-llm", PreTokenizer::deepseek_v3},
        std::pair{"hy_v4", PreTokenizer::deepseek_v3}}) {
    auto file = sample();
    file.set("tokenizer.ggml.pre", gguf::text(name));
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_TRUE(checkpoint && checkpoint->vocabulary) << name;
    EXPECT_EQ(checkpoint->vocabulary->pre_tokenizer, expected) << name;
    EXPECT_EQ(checkpoint->vocabulary->nfc, std::string_view(name).starts_with("qwen")) << name;
  }
}

TEST(Vocabulary, LlamaBpeAddsBosUnlessToldNotTo) {
  auto file = sample();
  file.set("tokenizer.ggml.pre", gguf::text("llama-bpe"));
  const auto vocabulary_of = [&] {
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    EXPECT_TRUE(checkpoint && checkpoint->vocabulary && checkpoint->warnings.empty());
    return *checkpoint->vocabulary;
  };
  file.set("tokenizer.ggml.add_bos_token", gguf::boolean(false));
  EXPECT_FALSE(vocabulary_of().add_bos);
  file.erase("tokenizer.ggml.add_bos_token");
  EXPECT_TRUE(vocabulary_of().add_bos);
  EXPECT_TRUE(vocabulary_of().whole_pieces);
  file.erase("tokenizer.ggml.bos_token_id");
  EXPECT_FALSE(vocabulary_of().add_bos);
  file.set("tokenizer.ggml.pre", gguf::text("qwen2"));
  EXPECT_FALSE(vocabulary_of().add_bos);
  EXPECT_FALSE(vocabulary_of().whole_pieces);
}

// The model can still be converted: the checkpoint has no vocabulary, and says why.
TEST(Vocabulary, UnsupportedTokenizersLeaveTheModel) {
  const auto reason_without = [](const std::function<void(GgufBuilder&)>& change) {
    auto file = sample();
    change(file);
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    EXPECT_TRUE(checkpoint);
    EXPECT_FALSE(checkpoint->vocabulary);
    return checkpoint->no_vocabulary;
  };
  const auto has = [](const std::string& text, const char* fragment) {
    return text.find(fragment) != std::string::npos;
  };
  EXPECT_TRUE(
      has(reason_without([](auto& f) { f.erase("tokenizer.ggml.model"); }), "no tokenizer"));
  EXPECT_TRUE(
      has(reason_without([](auto& f) { f.set("tokenizer.ggml.model", gguf::text("bert")); }),
          "'bert' is not supported, gpt2"));
  EXPECT_TRUE(
      has(reason_without([](auto& f) { f.set("tokenizer.ggml.pre", gguf::text("gpt-4o")); }),
          "'gpt-4o' is not supported, gpt-2 gpt2 smollm qwen2 qwen35 hunyuan"));
  // Patterns of their own, whatever the names have in common.
  for (const char* name : {"deepseek-llm", "deepseek-coder"}) {
    EXPECT_TRUE(has(reason_without([&](auto& f) { f.set("tokenizer.ggml.pre", gguf::text(name)); }),
                    (std::string("'") + name + "' is not supported").c_str()));
  }
  EXPECT_TRUE(
      has(reason_without([](auto& f) { f.set("tokenizer.ggml.pre", gguf::text("default")); }),
          "'default'"));
  EXPECT_TRUE(has(reason_without([](auto& f) { f.erase("tokenizer.ggml.pre"); }),
                  "'tokenizer.ggml.pre' is missing"));
}

TEST(Vocabulary, TypesAndIdsMayBeLeftOut) {
  auto file = sample();
  for (const char* key : {"tokenizer.ggml.token_type", "tokenizer.ggml.bos_token_id",
                          "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.add_bos_token"}) {
    file.erase(key);
  }
  file.set("tokenizer.ggml.eos_token_id", gguf::u32(0xffffffff));
  file.set("tokenizer.ggml.padding_token_id", gguf::i32(-1));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
  const auto& vocabulary = *checkpoint->vocabulary;
  EXPECT_EQ(vocabulary.types, std::vector<TokenType>(10, TokenType::normal));
  EXPECT_EQ(vocabulary.bos, kNoToken);
  EXPECT_EQ(vocabulary.eos, kNoToken);
  EXPECT_EQ(vocabulary.unknown, kNoToken);
  EXPECT_EQ(vocabulary.padding, kNoToken);
  EXPECT_FALSE(vocabulary.add_bos);
  EXPECT_TRUE(vocabulary.end_tokens.empty());
}

TEST(Vocabulary, WarnsOfWhatItCannotDo) {
  auto file = sample();
  file.erase("tokenizer.ggml.bos_token_id");
  file.set("tokenizer.ggml.tokens", gguf::texts({"<|endoftext|>", "<|im_end|>", "a", "b", " ", "日",
                                                 "ab", "Ġab", "<think>Ġ", "<|eot_id|>"}));
  const auto bytes = file.build();
  const auto checkpoint = parse(bytes);
  ASSERT_TRUE(checkpoint && checkpoint->vocabulary);
  EXPECT_FALSE(checkpoint->vocabulary->add_bos);
  EXPECT_EQ(checkpoint->vocabulary->tokens[5], "日");
  ASSERT_EQ(checkpoint->warnings.size(), 2u);
  EXPECT_NE(checkpoint->warnings[0].find("2 tokens"), std::string::npos);
  EXPECT_NE(checkpoint->warnings[1].find("BOS"), std::string::npos);
}

gguf::EncodedValue f32s(const std::vector<float>& values) {
  return gguf::array(ValueType::f32, values);
}

// <unk> <s> </s>, the bytes, ▁a b c, a user-defined token and an unused one.
GgufBuilder sentencepiece() {
  GgufBuilder file;
  file.set("tokenizer.ggml.model", gguf::text("llama"));
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.emplace_back(text);
    types.push_back(6);
  }
  for (const char* text : {"▁a", "b", "c", "▁<x>▁", "bc"}) tokens.emplace_back(text);
  types.insert(types.end(), {1, 1, 0, 4, 5});
  file.set("tokenizer.ggml.tokens", gguf::texts(tokens));
  file.set("tokenizer.ggml.token_type", gguf::i32s(types));
  std::vector<float> scores(259);
  scores.insert(scores.end(), {-1, -2, -3, 0, -0.5f});
  file.set("tokenizer.ggml.scores", f32s(scores));
  file.set("tokenizer.ggml.bos_token_id", gguf::u32(1));
  file.set("tokenizer.ggml.eos_token_id", gguf::u32(2));
  file.set("tokenizer.ggml.unknown_token_id", gguf::u32(0));
  return file;
}

TEST(Vocabulary, SentencePiece) {
  auto file = sentencepiece();
  const auto vocabulary_of = [&] {
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_TRUE(checkpoint->vocabulary) << checkpoint->no_vocabulary;
    EXPECT_TRUE(checkpoint->warnings.empty());
    return *checkpoint->vocabulary;
  };
  const auto vocabulary = vocabulary_of();
  EXPECT_EQ(vocabulary.model, format::TokenizerModel::sentencepiece_bpe);
  ASSERT_EQ(vocabulary.tokens.size(), 264u);
  EXPECT_EQ(vocabulary.tokens[0], "<unk>");
  EXPECT_EQ(vocabulary.tokens[3], std::string(1, '\0'));
  EXPECT_EQ(vocabulary.tokens[3 + 0x41], "A");
  EXPECT_EQ(vocabulary.tokens[3 + 0xff], "\xff");
  EXPECT_EQ(vocabulary.tokens[259], " a");
  EXPECT_EQ(vocabulary.tokens[262], " <x> ");
  EXPECT_EQ(vocabulary.scores[260], -2.0f);
  EXPECT_EQ(vocabulary.types[263], TokenType::unused);
  EXPECT_TRUE(vocabulary.merges.empty());
  EXPECT_TRUE(vocabulary.add_bos);  // the default of this kind
  EXPECT_TRUE(vocabulary.space_prefix);
  EXPECT_EQ(vocabulary.bos, 1u);
  EXPECT_EQ(vocabulary.end_tokens, std::vector<std::uint32_t>{2});
  const auto section = format::build_tokenizer_section(vocabulary);
  EXPECT_TRUE(section) << section.error().message();

  file.set("tokenizer.ggml.pre", gguf::text("default"));
  file.set("tokenizer.ggml.add_bos_token", gguf::boolean(false));
  file.set("tokenizer.ggml.add_space_prefix", gguf::boolean(false));
  file.set("tokenizer.ggml.remove_extra_whitespaces", gguf::boolean(false));
  EXPECT_FALSE(vocabulary_of().add_bos);
  EXPECT_FALSE(vocabulary_of().space_prefix);
}

TEST(Vocabulary, SentencePieceThatTsqDoesNotRun) {
  const struct {
    std::function<void(GgufBuilder&)> change;
    const char* reason;
  } kCases[] = {
      {[](auto& f) { f.set("tokenizer.ggml.pre", gguf::text("viking")); }, "'viking'"},
      {[](auto& f) { f.set("tokenizer.ggml.precompiled_charsmap", gguf::i32s({1})); },
       "a character map is not supported"},
      {[](auto& f) { f.set("tokenizer.ggml.remove_extra_whitespaces", gguf::boolean(true)); },
       "'tokenizer.ggml.remove_extra_whitespaces' is true"},
      {[](auto& f) { f.erase("tokenizer.ggml.token_type"); }, "no token for the byte 0x00"},
  };
  for (const auto& [change, reason] : kCases) {
    auto file = sentencepiece();
    change(file);
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_FALSE(checkpoint->vocabulary);
    EXPECT_NE(checkpoint->no_vocabulary.find(reason), std::string::npos)
        << checkpoint->no_vocabulary;
  }
}

TEST(Vocabulary, BrokenSentencePiece) {
  const struct {
    std::function<void(GgufBuilder&)> breaks;
    const char* message;
  } kCases[] = {
      {[](auto& f) { f.erase("tokenizer.ggml.scores"); }, "'tokenizer.ggml.scores' is missing"},
      {[](auto& f) { f.set("tokenizer.ggml.scores", gguf::texts({"x"})); },
       "'tokenizer.ggml.scores' is array of string"},
      {[](auto& f) {
         f.set("tokenizer.ggml.scores", f32s({1, 2}));
       },
       "holds 2 scores for 264 tokens"},
      {[](auto& f) {
         std::vector<float> scores(264);
         scores[7] = std::numeric_limits<float>::infinity();
         f.set("tokenizer.ggml.scores", f32s(scores));
       },
       "holds inf at 7, expected a finite number"},
      {[](auto& f) {
         std::vector<std::int32_t> types(264, 1);
         types[1] = 6;
         f.set("tokenizer.ggml.token_type", gguf::i32s(types));
       },
       "holds '<s>' at 1 for a byte, expected <0x00> to <0xFF>"},
      {[](auto& f) { f.set("tokenizer.ggml.add_space_prefix", gguf::u32(1)); },
       "'tokenizer.ggml.add_space_prefix' is u32"},
      {[](auto& f) { f.set("tokenizer.ggml.pre", gguf::u32(1)); }, "'tokenizer.ggml.pre' is u32"},
  };
  for (const auto& [breaks, message] : kCases) {
    auto file = sentencepiece();
    breaks(file);
    const auto bytes = file.build();
    const auto checkpoint = parse(bytes);
    ASSERT_FALSE(checkpoint) << message;
    EXPECT_EQ(checkpoint.error().code(), ErrorCode::damaged) << message;
    EXPECT_NE(checkpoint.error().message().find(message), std::string::npos)
        << checkpoint.error().message();
  }
}

struct Broken {
  const char* name;
  std::function<void(GgufBuilder&)> breaks;
  std::vector<std::string> message;
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenVocabulary : public testing::TestWithParam<Broken> {};

TEST_P(BrokenVocabulary, IsRefusedByName) {
  auto builder = sample();
  GetParam().breaks(builder);
  const auto file = builder.build();
  const auto checkpoint = parse(file);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().code(), ErrorCode::damaged);
  for (const std::string& fragment : GetParam().message) {
    EXPECT_NE(checkpoint.error().message().find(fragment), std::string::npos)
        << "no '" << fragment << "' in: " << checkpoint.error().message();
  }
}

const Broken kBroken[] = {
    {"model_type",
     [](auto& f) { f.set("tokenizer.ggml.model", gguf::u32(1)); },
     {"'tokenizer.ggml.model' is u32"}},
    {"no_tokens",
     [](auto& f) { f.erase("tokenizer.ggml.tokens"); },
     {"'tokenizer.ggml.tokens' is missing"}},
    {"empty_tokens",
     [](auto& f) { f.set("tokenizer.ggml.tokens", gguf::texts({})); },
     {"'tokenizer.ggml.tokens' holds 0 tokens"}},
    {"tokens_type",
     [](auto& f) { f.set("tokenizer.ggml.tokens", gguf::i32s({1})); },
     {"'tokenizer.ggml.tokens' is array of i32", "array of strings"}},
    {"no_merges",
     [](auto& f) { f.erase("tokenizer.ggml.merges"); },
     {"'tokenizer.ggml.merges' is missing"}},
    {"types_short",
     [](auto& f) {
       f.set("tokenizer.ggml.token_type", gguf::i32s({1, 1}));
     },
     {"'tokenizer.ggml.token_type' holds 2 types for 10 tokens"}},
    {"types_range",
     [](auto& f) {
       f.set("tokenizer.ggml.token_type", gguf::i32s({3, 3, 1, 1, 1, 7, 1, 1, 4, 1}));
     },
     {"'tokenizer.ggml.token_type' holds 7 at 5", "0 to 6"}},
    {"bos",
     [](auto& f) { f.set("tokenizer.ggml.bos_token_id", gguf::u32(10)); },
     {"'tokenizer.ggml.bos_token_id' is 10", "10 tokens"}},
    {"eos",
     [](auto& f) { f.set("tokenizer.ggml.eos_token_id", gguf::i32(-2)); },
     {"'tokenizer.ggml.eos_token_id' is -2"}},
    {"eot",
     [](auto& f) { f.set("tokenizer.ggml.eot_token_id", gguf::u32(99)); },
     {"'tokenizer.ggml.eot_token_id' is 99"}},
    {"eom",
     [](auto& f) { f.set("tokenizer.ggml.eom_token_id", gguf::u32(99)); },
     {"'tokenizer.ggml.eom_token_id' is 99"}},
    {"pad",
     [](auto& f) { f.set("tokenizer.ggml.padding_token_id", gguf::text("x")); },
     {"'tokenizer.ggml.padding_token_id' is string"}},
    {"unknown",
     [](auto& f) { f.set("tokenizer.ggml.unknown_token_id", gguf::u32(99)); },
     {"'tokenizer.ggml.unknown_token_id' is 99"}},
    {"add_bos",
     [](auto& f) { f.set("tokenizer.ggml.add_bos_token", gguf::u32(1)); },
     {"'tokenizer.ggml.add_bos_token' is u32", "boolean"}},
};

INSTANTIATE_TEST_SUITE_P(Every, BrokenVocabulary, testing::ValuesIn(kBroken),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tsq
