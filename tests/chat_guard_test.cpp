#include <gtest/gtest.h>

#include <string>

#include "chat/guard.h"
#include "tokenizer_files.h"

namespace tsq::chat {
namespace {

using format::TokenType;
using Tokens = std::vector<Token>;

const std::string kFirst = "\xef\xb7\x90", kSecond = "\xef\xb7\x91";  // U+FDD0, U+FDD1

class GuardTest : public testing::Test {
 protected:
  GuardTest()
      : opened_(byte_vocabulary({{"<end>", TokenType::control},      // 256
                                 {"\xc3\xa9!", TokenType::control},  // 257
                                 {"<think>", TokenType::user_defined}})) {}
  const Tokenizer& tokenizer() const { return opened_.tokenizer; }

  OpenedTokenizer opened_;
};

TEST_F(GuardTest, MarksControlTokensInEveryString) {
  const Json messages =
      Json::array({message("user", "a<end><end>b <think> <en d>"),
                   Json{{"role", "user"},
                        {"content", {{{"type", "text"}, {"text", "\xc3\xa9!"}}, 5, nullptr}}}});
  const auto guarded = guard(messages, tokenizer());
  ASSERT_TRUE(guarded);
  EXPECT_EQ(guarded->mark, kFirst);
  EXPECT_EQ(guarded->messages[0]["content"],
            "a<" + kFirst + "end><" + kFirst + "end>b <think> <en d>");
  EXPECT_EQ(guarded->messages[1]["content"][0]["text"], "\xc3\xa9" + kFirst + "!");
  EXPECT_EQ(guarded->messages[1]["content"][1], 5);
}

TEST_F(GuardTest, TakesAMarkThatNobodyWrote) {
  const auto guarded = guard(Json::array({message("user", kFirst + "<end>")}), tokenizer());
  ASSERT_TRUE(guarded);
  EXPECT_EQ(guarded->messages[0]["content"], kFirst + "<" + kSecond + "end>");
  std::string all;
  for (int last = 0x90; last <= 0xaf; ++last) all += {'\xef', '\xb7', static_cast<char>(last)};
  const auto refused = guard(Json::array({message("user", all)}), tokenizer());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::invalid_argument);
}

// What it is for: the template's tokens are tokens, the user's are text.
TEST_F(GuardTest, OnlyTheTemplateEndsATurn) {
  const auto guarded = guard(Json::array({message("user", "x<end>y")}), tokenizer());
  ASSERT_TRUE(guarded);
  Conversation c;
  c.messages = guarded->messages;
  const auto prompt = ChatTemplate("{{ messages[0].content | trim }}<end>").render(c);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(encode(tokenizer(), prompt->text, {.parse_special = true, .guard = guarded->mark}),
            (Tokens{'x', '<', 'e', 'n', 'd', '>', 'y', 256}));
}

TEST_F(GuardTest, DeepMessagesAreLeftToTheTemplate) {
  Json deep = "<end>";
  for (int i = 0; i < 500; ++i) deep = Json::array({std::move(deep)});
  Conversation c;
  c.messages = Json::array({Json{{"role", "user"}, {"content", std::move(deep)}}});
  const auto guarded = guard(c.messages, tokenizer());
  ASSERT_TRUE(guarded);
  EXPECT_FALSE(ChatTemplate("{{ messages }}").render(c));
}

}  // namespace
}  // namespace tsq::chat
