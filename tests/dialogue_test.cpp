// Prompts of a conversation, and what a session reads of them.
#include "tools/dialogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models.h"
#include "tools/generation.h"

namespace tsq::tool {
namespace {

constexpr char kTemplate[] =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% if enable_thinking %} <think>\n{% endif %}"
    "{% endif %}";

class DialogueTest : public testing::Test {
 protected:
  DialogueTest() : model_(test::open_model("llama_rot128.ptq1_0.gguf")) {}

  Dialogue dialogue(const char* system = "", std::optional<bool> think = {}) const {
    return Dialogue(model_, {.system = system, .think = think, .template_text = kTemplate});
  }
  std::string text(Dialogue& dialogue) const {
    const auto prompt = dialogue.prompt();
    EXPECT_TRUE(prompt) << prompt.error().message();
    return prompt ? model_.tokenizer()->decode(prompt->tokens) : "";
  }

  Model model_;
};

TEST_F(DialogueTest, KnowsWhatLaterPromptsBeginWith) {
  Dialogue d = dialogue("Be brief", true);
  d.say("One \xe2\x80\x9c");
  const auto prompt = d.prompt();
  ASSERT_TRUE(prompt);
  ASSERT_LT(prompt->lasting, prompt->tokens.size());
  const std::span tokens(prompt->tokens);
  EXPECT_EQ(model_.tokenizer()->decode(tokens.first(prompt->lasting)),
            "[system] Be brief\n[user] One \xe2\x80\x9c\n");
  EXPECT_EQ(model_.tokenizer()->decode(tokens.subspan(prompt->lasting)), "[assistant] <think>\n");
}

TEST_F(DialogueTest, RendersItsMessages) {
  Dialogue d = dialogue("Be brief");
  d.say("One");
  EXPECT_TRUE(d.awaits_answer());
  EXPECT_EQ(text(d), "[system] Be brief\n[user] One\n[assistant]");
  d.answer("hm", "Two");
  EXPECT_FALSE(d.awaits_answer());
  d.say("bad \xff byte");
  EXPECT_EQ(text(d),
            "[system] Be brief\n[user] One\n[assistant] Two\n[user] bad \xef\xbf\xbd byte\n"
            "[assistant]");
  EXPECT_FALSE(d.take_back("assistant"));
  EXPECT_TRUE(d.take_back("user"));
  EXPECT_TRUE(d.take_back("assistant"));
  EXPECT_EQ(text(d), "[system] Be brief\n[user] One\n[assistant]");
  d.clear();
  EXPECT_EQ(text(d), "[system] Be brief\n[assistant]");
}

TEST_F(DialogueTest, KnowsWhetherAThoughtIsOpen) {
  for (const bool think : {false, true}) {
    Dialogue d = dialogue("", think);
    d.say("<think>");
    const auto prompt = d.prompt();
    ASSERT_TRUE(prompt);
    EXPECT_EQ(prompt->in_thought, think);
  }
}

// Its template opens a thought unless it is told not to; then it writes an empty one.
TEST_F(DialogueTest, ThoughtsByTheTemplateOfQwen35) {
  std::ifstream in(TSQ_TEST_DATA "/chat/rendered.json");
  const auto goldens = nlohmann::json::parse(in);
  const auto source = goldens.at("templates").at("Qwen3.5-4B").get<std::string>();
  const auto ending = [&](const char* key) {
    const std::string whole = goldens.at("rendered").at("Qwen3.5-4B").at(key).at("text");
    return whole.substr(whole.rfind("<|im_start|>assistant"));
  };
  for (const std::optional<bool> think :
       {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    Dialogue d(model_, {.think = think, .template_text = source});
    d.say("Why?");
    const auto prompt = d.prompt();
    ASSERT_TRUE(prompt) << prompt.error().message();
    EXPECT_EQ(prompt->in_thought, think.value_or(true));
    const std::string text = model_.tokenizer()->decode(prompt->tokens);
    EXPECT_TRUE(text.ends_with(ending(think.value_or(true) ? "thinking on" : "thinking off")))
        << text;
    // What was thought before the last question is not read again.
    d.answer("Because of this", "So.");
    d.say("How?");
    EXPECT_EQ(this->text(d).find("Because"), std::string::npos);
  }
}

TEST_F(DialogueTest, SavesAndLoads) {
  Dialogue d = dialogue("Be brief");
  d.say("\xe2\x80\x9cOne\xe2\x80\x9d");
  d.answer("hm", "Two");
  const std::string saved = d.to_json();
  EXPECT_TRUE(is_dialogue(saved));
  Dialogue other = dialogue();
  ASSERT_TRUE(other.load_json(saved));
  EXPECT_EQ(other.to_json(), saved);
  ASSERT_TRUE(other.load_json(R"([{"role": "user", "content": "x"}])"));
  EXPECT_EQ(text(other), "[user] x\n[assistant]");
  for (const auto& [json, message] : {
           std::pair("x", "no JSON, expected a saved conversation"),
           std::pair("{}", "no \"messages\", expected a saved conversation"),
           std::pair("{\"messages\": 5}", "messages: not a list, expected one"),
           std::pair("[5]", "message 0: no \"role\", expected a string"),
           std::pair("[{\"role\": \"user\", \"content\": 5}]",
                     "message 0: no \"content\", expected a string"),
       }) {
    const auto loaded = other.load_json(json);
    ASSERT_FALSE(loaded) << json;
    EXPECT_EQ(loaded.error().message(), message);
    EXPECT_FALSE(is_dialogue(json));
  }
  EXPECT_EQ(text(other), "[user] x\n[assistant]");
}

TEST_F(DialogueTest, ReadsOnlyWhatIsNew) {
  Session session = *Session::create(model_, {.context = 64});
  Reader reader(session);
  const std::vector<Token> first = {5, 17, 101, 3}, second = {5, 17, 101, 9, 9, 4};
  const auto fresh_logits = [&](std::span<const Token> tokens) {
    Session fresh = *Session::create(model_, {.context = 64});
    const auto logits = fresh.append(tokens);
    return std::vector<float>(logits->begin(), logits->end());
  };
  std::size_t read = 0;
  // Another ending, the same again (one token is read: logits come of it), a prefix, a longer one.
  for (const auto& [tokens, is_new] :
       {std::pair(std::span(first), 4u), std::pair(std::span(second), 3u),
        std::pair(std::span(second), 1u), std::pair(std::span(second).first(2), 1u),
        std::pair(std::span(second), 4u)}) {
    const auto logits = reader.read(tokens);
    ASSERT_TRUE(logits);
    EXPECT_TRUE(std::ranges::equal(*logits, fresh_logits(tokens)));
    read += is_new;
    EXPECT_EQ(reader.timing().tokens, read);
  }
  ASSERT_TRUE(reader.append(7));
  const std::vector<Token> longer = {5, 17, 101, 9, 9, 4, 7, 8};
  const auto logits = reader.read(longer);
  ASSERT_TRUE(logits);
  EXPECT_TRUE(std::ranges::equal(*logits, fresh_logits(longer)));
  EXPECT_EQ(reader.timing().tokens, read + 1);

  const std::vector<Token> too_long(65, 5);
  EXPECT_EQ(reader.read(too_long).error().code(), ErrorCode::out_of_context);
  const auto after = reader.read(first);
  ASSERT_TRUE(after);
  EXPECT_TRUE(std::ranges::equal(*after, fresh_logits(first)));
}

// A recurrent model goes back to where later prompts part from the one that was read.
TEST(ReaderTest, ReadsOnlyWhatIsNewToARecurrentModel) {
  const Model model = test::open_model("qwen35_two.gguf");
  Session session = *Session::create(model, {.context = 64});
  Reader reader(session);
  // Messages, the beginning of an answer (8, 8), answers, and what a template leaves of them.
  const std::vector<Token> first = {5, 17, 101, 3, 8, 8};
  const std::vector<Token> kept = {5, 17, 101, 3, 8, 8, 40, 41, 50, 51, 8, 8};
  const std::vector<Token> cut = {5, 17, 101, 3, 41, 60, 61, 62, 8, 8};
  const std::vector<Token> other = {7, 7, 7, 8, 8};
  std::size_t read = 0;
  const auto expect = [&](const std::vector<Token>& tokens, std::size_t is_new) {
    const auto logits = reader.read(tokens, tokens.size() - 2);
    ASSERT_TRUE(logits);
    Session fresh = *Session::create(model, {.context = 64});
    EXPECT_TRUE(std::ranges::equal(*logits, *fresh.append(tokens)));
    read += is_new;
    EXPECT_EQ(reader.timing().tokens, read);
  };
  expect(first, 6);
  ASSERT_TRUE(reader.append(40));
  expect(first, 2);  // the answer once more
  ASSERT_TRUE(reader.append(40));
  ASSERT_TRUE(reader.append(41));
  expect(kept, 4);  // all of the answer is held
  ASSERT_TRUE(reader.append(42));
  expect(cut, 6);  // its beginning is gone: from the mark after the first message
  expect(cut, 2);
  expect(other, 5);
  const std::vector<Token> too_long(65, 5);
  EXPECT_EQ(reader.read(too_long).error().code(), ErrorCode::out_of_context);
  expect(other, 5);
}

}  // namespace
}  // namespace tsq::tool
