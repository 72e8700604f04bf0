// tokenizer.json: the ids of Hugging Face's own library, and what has no counterpart in tsq.
#include <algorithm>

#include "hf_files.h"
#include "tokenizer_files.h"

namespace tsq {
namespace {

using format::kNoToken;
using format::TokenType;
using nlohmann::json;

json merged(json whole, const json& part) {
  whole.update(part);
  return whole;
}

format::Vocabulary vocabulary_of(HfFolder& folder) {
  const auto checkpoint = folder.sound();
  EXPECT_TRUE(checkpoint.vocabulary) << checkpoint.no_vocabulary;
  return checkpoint.vocabulary.value_or(format::Vocabulary());
}

format::Vocabulary vocabulary_of(const json& tokenizer, std::uint64_t rows) {
  HfFolder folder(rows);
  folder.tokenizer = tokenizer.dump();
  return vocabulary_of(folder);
}

// hf_byte_level.json with the rules of a pre-tokenizer.
json byte_level(const std::string& pre) {
  json rules = read_json("hf_text_rules.json")[pre];
  json whole = read_json("hf_byte_level.json");
  whole["model"]["ignore_merges"] = rules["ignore_merges"];
  rules.erase("ignore_merges");
  return merged(whole, rules);
}

class ByteLevelGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(ByteLevelGoldenTest, IdsOfHuggingFace) {
  const std::string pre = GetParam();
  const format::Vocabulary vocabulary = vocabulary_of(byte_level(pre), 1500);
  EXPECT_EQ(vocabulary.nfc, pre.starts_with("qwen"));
  EXPECT_EQ(vocabulary.whole_pieces, pre == "llama-bpe");
  const OpenedTokenizer opened(vocabulary);
  const json goldens = read_json("golden.json");
  for (const auto& entry : goldens["entries"]) {
    if (!entry.contains("text")) continue;
    SCOPED_TRACE(entry.dump());
    const auto text = entry["text"].get<std::string>();
    const json& golden = entry[pre];
    const bool nfc = vocabulary.nfc && golden.contains("nfc");
    EXPECT_EQ(encode(opened.tokenizer, text), golden[nfc ? "nfc" : "ids"]);
    if (golden.contains("special")) {
      EXPECT_EQ(encode(opened.tokenizer, text, {.add_special = false, .parse_special = true}),
                golden["special"]);
    }
  }
}

// DeepSeek's own file has line breaks and quotes themselves.
TEST(HfTokenizerTest, PatternsMayBeSpelledInTwoWays) {
  json other = byte_level("deepseek-v3");
  for (json& step : other["pre_tokenizer"]["pretokenizers"]) {
    if (!step.contains("pattern")) continue;
    auto regex = step["pattern"]["Regex"].get<std::string>();
    for (const auto& [from, to] : {std::pair("\\r", "\r"), {"\\n", "\n"}, {"\\\"", "\""}}) {
      for (std::size_t at; (at = regex.find(from)) != std::string::npos;) regex.replace(at, 2, to);
    }
    step["pattern"]["Regex"] = regex;
  }
  EXPECT_EQ(vocabulary_of(other, 1500).pre_tokenizer, format::PreTokenizer::deepseek_v3);
}

INSTANTIATE_TEST_SUITE_P(Every, ByteLevelGoldenTest,
                         testing::Values("gpt-2", "smollm", "qwen2", "llama-bpe", "qwen35",
                                         "deepseek-v3"),
                         [](const auto& test) { return std::to_string(test.index); });

class SentencePieceGoldenTest : public testing::TestWithParam<const char*> {};

json sentencepiece(const std::string& form) {
  return merged(read_json("hf_sentencepiece.json"), read_json("hf_sentencepiece_rules.json")[form]);
}

TEST_P(SentencePieceGoldenTest, IdsOfHuggingFace) {
  const std::string form = GetParam();
  const format::Vocabulary vocabulary = vocabulary_of(sentencepiece(form), 1000);
  EXPECT_EQ(vocabulary.space_prefix, form == "prefix");
  const OpenedTokenizer opened(vocabulary);
  const auto entries = read_json("hf_sentencepiece_golden.json")["entries"];
  ASSERT_GE(entries.size(), 90u);
  for (const auto& entry : entries) {
    SCOPED_TRACE(entry.dump());
    EXPECT_EQ(encode(opened.tokenizer, entry["text"].get<std::string>(),
                     {.add_special = false, .parse_special = true}),
              entry[form == "prefix" ? "prefix" : "plain"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, SentencePieceGoldenTest,
                         testing::Values("prefix", "plain", "never"),
                         [](const auto& test) { return std::string(test.param); });

// ---- by hand ----

json small() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 5, "content": "<s>", "special": true, "lstrip": false, "rstrip": false,
       "single_word": false, "normalized": false},
      {"id": 6, "content": "<think>", "special": false},
      {"id": 4, "content": "<|im_end|>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "<|im_end|>": 4},
              "merges": ["a b"]}})");
}

HfFolder small_folder(const json& tokenizer = small(), std::uint64_t rows = 8) {
  HfFolder folder(rows);
  folder.tokenizer = tokenizer.dump();
  return folder;
}

TEST(HfTokenizerTest, HoldsTokensTypesAndMerges) {
  for (const bool pairs : {false, true}) {
    json tokenizer = small();
    if (pairs) tokenizer["model"]["merges"] = json::parse(R"([["a", "b"]])");
    const auto vocabulary = vocabulary_of(tokenizer, 8);
    EXPECT_EQ(vocabulary.tokens, (std::vector<std::string>{"a", "b", " ", "ab", "<|im_end|>", "<s>",
                                                           "<think>", "[PAD7]"}));
    EXPECT_EQ(vocabulary.types,
              (std::vector<TokenType>{TokenType::normal, TokenType::normal, TokenType::normal,
                                      TokenType::normal, TokenType::control, TokenType::control,
                                      TokenType::user_defined, TokenType::unused}));
    ASSERT_EQ(vocabulary.merges.size(), 1u);
    EXPECT_EQ(vocabulary.merges[0].result, 3u);
    EXPECT_EQ(vocabulary.bos, kNoToken);
    EXPECT_FALSE(vocabulary.add_bos);
    EXPECT_EQ(vocabulary.end_tokens, std::vector<std::uint32_t>{4});  // by its text
  }
}

TEST(HfTokenizerTest, SpecialTokensByTextOrId) {
  auto folder = small_folder();
  folder.config["bos_token_id"] = 3;
  folder.config["eos_token_id"] = {1, 4};
  folder.config["pad_token_id"] = 2;
  auto vocabulary = vocabulary_of(folder);
  EXPECT_EQ(vocabulary.bos, 3u);
  EXPECT_EQ(vocabulary.eos, 1u);
  EXPECT_EQ(vocabulary.padding, 2u);
  EXPECT_EQ(vocabulary.end_tokens, (std::vector<std::uint32_t>{1, 4}));

  folder.tokenizer_config =
      R"({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>"}, "add_bos_token": true})";
  folder.generation_config = R"({"eos_token_id": [4, 0]})";
  vocabulary = vocabulary_of(folder);
  EXPECT_EQ(vocabulary.bos, 5u);
  EXPECT_EQ(vocabulary.eos, 4u);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  EXPECT_EQ(vocabulary.end_tokens, (std::vector<std::uint32_t>{0, 1, 4}));

  folder.generation_config = R"({"eos_token_id": 8})";
  folder.expect_refused(ErrorCode::damaged, "generation_config.json: 'eos_token_id' is 8");
  folder.generation_config.reset();
  folder.config["bos_token_id"] = 8;
  folder.tokenizer_config.reset();
  folder.expect_refused(ErrorCode::damaged, "config.json: 'bos_token_id' is 8");
}

TEST(HfTokenizerTest, TheTemplateSaysWhatIsAdded) {
  json tokenizer = small();
  const json text = {{"Sequence", {{"id", "A"}}}};
  const auto token = [](const char* id) { return json{{"SpecialToken", {{"id", id}}}}; };
  const auto process = [&](const json& single) {
    tokenizer["post_processor"] = {
        {"type", "Sequence"},
        {"processors",
         {{{"type", "ByteLevel"}}, {{"type", "TemplateProcessing"}, {"single", single}}}}};
    auto folder = small_folder(tokenizer);
    folder.tokenizer_config = R"({"bos_token": "a", "add_bos_token": false})";
    return folder;
  };
  auto both = process({token("<s>"), text, token("<|im_end|>")});
  auto vocabulary = vocabulary_of(both);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_EQ(vocabulary.bos, 5u);
  EXPECT_TRUE(vocabulary.add_eos);
  EXPECT_EQ(vocabulary.eos, 4u);
  auto none = process(json::array({text}));
  none.tokenizer_config = R"({"bos_token": "a", "add_bos_token": true})";
  EXPECT_FALSE(vocabulary_of(none).add_bos);
  for (const json& single : {json{token("<s>"), token("<s>"), text}, json{text, text},
                             json{token("<none>"), text}, json(nullptr)}) {
    auto folder = process(single);
    EXPECT_NE(folder.sound().no_vocabulary.find("post-processor"), std::string::npos)
        << single.dump();
  }
}

TEST(HfTokenizerTest, ChatTemplatesOfEveryPlace) {
  const auto text = [](HfFolder& folder) {
    const auto checkpoint = folder.sound();
    const Value* value = checkpoint.metadata.find("tokenizer.chat_template");
    return std::string(value ? value->as_string().value() : "none");
  };
  auto folder = small_folder();
  EXPECT_EQ(text(folder), "none");
  folder.tokenizer_config = R"({"chat_template": "one"})";
  EXPECT_EQ(text(folder), "one");
  folder.tokenizer_config =
      R"({"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "two"}]})";
  EXPECT_EQ(text(folder), "two");
  folder.chat_template = "three";
  EXPECT_EQ(text(folder), "three");
  folder.tokenizer.reset();  // a template without a tokenizer stays
  EXPECT_EQ(text(folder), "three");
}

TEST(HfTokenizerTest, ATemplateThatIsTooLongIsNamedByItsFile) {
  const std::string text((1u << 20) + 1, 'a');
  auto folder = small_folder();
  folder.tokenizer_config = json{{"chat_template", text}}.dump();
  folder.expect_refused(ErrorCode::unsupported,
                        "tokenizer_config.json: the chat template has 1048577 bytes");
  folder.chat_template = text;
  folder.expect_refused(ErrorCode::unsupported,
                        "chat_template.jinja: the chat template has 1048577 bytes");
}

// The limit itself in four tokens, and the 26 bytes of the others.
TEST(HfTokenizerTest, TokensOfTooMuchText) {
  json tokenizer = small();
  for (std::size_t id = 7; id < 11; ++id) {
    tokenizer["model"]["vocab"][std::to_string(id) +
                                std::string(format::kMaxTextBytes / 2 - (id < 10 ? 1 : 2), 'a')] =
        id;
  }
  small_folder(tokenizer, 11)
      .expect_refused(ErrorCode::unsupported,
                      "tokenizer.json: tokens of 6291482 bytes of text, at most 6291456 are");
}

struct Case {
  const char *at, *value, *fragment;
};

TEST(HfTokenizerTest, WithoutATokenizerWhereTsqHasNone) {
  const Case kCases[] = {
      {"/model/type", "\"Unigram\"", "its model (Unigram) is not supported, BPE is"},
      {"/model/dropout", "0.1", "its model has dropout"},
      {"/model/continuing_subword_prefix", "\"##\"", "its model has continuing_subword_prefix"},
      {"/model/end_of_word_suffix", "\"</w>\"", "its model has end_of_word_suffix"},
      {"/normalizer", "{\"type\":\"Lowercase\"}", "its normalizer (Lowercase) is not supported"},
      {"/normalizer", "{\"type\":\"NFKC\"}", "its normalizer (NFKC)"},
      {"/pre_tokenizer", "null", "its pre-tokenizer () is none"},
      {"/pre_tokenizer", "{\"type\":\"Whitespace\"}", "its pre-tokenizer (Whitespace) is none"},
      {"/pre_tokenizer/add_prefix_space", "true", "its pre-tokenizer (ByteLevel) is none"},
      {"/pre_tokenizer/use_regex", "false", "its pre-tokenizer (ByteLevel) is none"},
      {"/post_processor", "{\"type\":\"RobertaProcessing\"}",
       "its post-processor (RobertaProcessing) is not supported"},
      {"/added_tokens/0/lstrip", "true", "token '<s>' has the flag lstrip"},
      {"/added_tokens/0/single_word", "true", "token '<s>' has the flag single_word"},
      {"/added_tokens/0/id", "8", "token '<s>' has the id 8, the embedding has 8 rows"},
      {"/model/vocab/ab", "9", "token 'ab' has the id 9, the embedding has 8 rows"},
  };
  for (const Case& change : kCases) {
    json tokenizer = small();
    tokenizer[json::json_pointer(change.at)] = json::parse(change.value);
    auto folder = small_folder(tokenizer);
    const auto checkpoint = folder.sound();
    EXPECT_FALSE(checkpoint.vocabulary);
    EXPECT_NE(checkpoint.no_vocabulary.find(std::string("tokenizer.json: ") + change.fragment),
              std::string::npos)
        << checkpoint.no_vocabulary;
    EXPECT_EQ(checkpoint.metadata.find("tokenizer.ggml.model"), nullptr);
  }
  HfFolder folder;
  EXPECT_EQ(folder.sound().no_vocabulary, "there is no tokenizer.json");
  json other = byte_level("qwen2");
  json& regex = other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  regex = regex.get<std::string>() + "|x";
  auto unknown = small_folder(other, 1500);
  EXPECT_NE(unknown.sound().no_vocabulary.find("its pre-tokenizer (Split, ByteLevel)"),
            std::string::npos);
}

TEST(HfTokenizerTest, RefusesWhatCannotBe) {
  const Case kCases[] = {
      {"/model", "null", "'model' is missing"},
      {"/model/vocab", "[]", "'model.vocab' is an array, expected an object of ids"},
      {"/model/vocab/a", "-1", "the id of token 'a' is -1"},
      {"/model/vocab/a", "1", "tokens 'a' and 'b' have the same id, 1"},
      {"/added_tokens/0/content", "7", "an entry of 'added_tokens' is an object"},
      {"/added_tokens/0/id", "0", "token 0 is 'a' in the vocabulary and '<s>' where added"},
      {"/model/merges", "null", "'model.merges' is missing"},
      {"/model/merges/0", "\"ab\"", "merge 0 is 'ab', expected two texts"},
      {"/model/merges/0", "\"a b c\"", "merge 0 is 'a b c'"},
      {"/model/merges/0", "[\"a\"]", "merge 0 is an array"},
      {"/model/merges/0", "[\"a\", 1]", "merge 0 is an array"},
      {"/model/merges/0", "[\"a\", \"\"]", "merge 0 is an array"},
  };
  for (const Case& change : kCases) {
    json tokenizer = small();
    tokenizer[json::json_pointer(change.at)] = json::parse(change.value);
    small_folder(tokenizer).expect_refused(ErrorCode::damaged,
                                           std::string("tokenizer.json: ") + change.fragment);
  }
  auto folder = small_folder();
  folder.tokenizer = "{";
  folder.expect_refused(ErrorCode::damaged, "tokenizer.json: not JSON");
  folder.tokenizer_config = "[";
  folder.expect_refused(ErrorCode::damaged, "tokenizer_config.json: not JSON");
}

TEST(HfTokenizerTest, MergesThatAreNotSentencePieces) {
  const auto reason = [](const json& tokenizer) {
    auto folder = small_folder(tokenizer, 1000);
    return folder.sound().no_vocabulary;
  };
  json missing = sentencepiece("plain");
  missing["model"]["merges"].erase(missing["model"]["merges"].size() / 2);
  EXPECT_NE(reason(missing).find("SentencePiece would have"), std::string::npos);
  json scattered = sentencepiece("plain");
  auto& merges = scattered["model"]["merges"];
  std::rotate(merges.begin(), merges.begin() + 1, merges.end());
  const auto text = [](const json& merge) {
    return merge[0].get<std::string>() + merge[1].get<std::string>();
  };
  // The first merge of a token that has several goes to the end.
  for (std::size_t i = 0; i + 1 < merges.size(); ++i) {
    if (text(merges[i]) != text(merges[i + 1])) continue;
    const json merge = merges[i];
    merges.erase(i);
    merges.push_back(merge);
    break;
  }
  EXPECT_NE(reason(scattered).find("do not follow each other"), std::string::npos);
  json no_bytes = sentencepiece("plain");
  no_bytes["model"]["byte_fallback"] = false;
  EXPECT_NE(reason(no_bytes).find("no byte fallback"), std::string::npos);
  json user_defined = sentencepiece("prefix");
  user_defined["added_tokens"][0]["special"] = false;
  EXPECT_NE(reason(user_defined).find("space after added tokens"), std::string::npos);
  json always = sentencepiece("never");
  always["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_NE(reason(always).find("(Metaspace) is none"), std::string::npos);
}

}  // namespace
}  // namespace tsq
