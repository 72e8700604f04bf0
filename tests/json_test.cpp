// base/json.h: what is read, and what is refused.
#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace tsq {
namespace {

JsonDocument parsed(std::string_view text) {
  auto document = JsonDocument::parse(text);
  EXPECT_TRUE(document) << (document ? "" : document.error().message());
  return document ? std::move(*document) : JsonDocument();
}

void expect_refused(std::string_view text, ErrorCode code, const std::string& fragment,
                    const JsonLimits& limits = {}) {
  const auto document = JsonDocument::parse(text, limits);
  ASSERT_FALSE(document) << text.substr(0, 80);
  EXPECT_EQ(document.error().code(), code);
  EXPECT_NE(document.error().message().find(fragment), std::string::npos)
      << document.error().message();
}

TEST(JsonTest, ReadsEveryKind) {
  const JsonDocument document = parsed(
      R"( {"a": [1, -2, 1.5, "t\u00e9\n", true, null], "": {}, "b": {"c": 18446744073709551615}} )");
  const Json root = document.root();
  ASSERT_EQ(root.size(), 3u);
  const auto a = root.find("a");
  ASSERT_TRUE(a);
  ASSERT_EQ(a->size(), 6u);
  std::vector<Json> items;
  for (const auto& [key, item] : *a) {
    EXPECT_EQ(key, "");
    items.push_back(item);
  }
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(items[0].as_u64(), 1u);
  EXPECT_FALSE(items[1].as_u64());
  EXPECT_EQ(items[1].as_f64(), -2.0);
  EXPECT_EQ(items[2].as_f64(), 1.5);
  EXPECT_FALSE(items[2].as_u64());
  EXPECT_EQ(items[3].as_string(), "t\xc3\xa9\n");
  EXPECT_EQ(items[4].as_bool(), true);
  EXPECT_FALSE(items[4].as_u64());
  EXPECT_EQ(items[5].kind(), JsonKind::null);
  EXPECT_EQ(root.find("b")->find("c")->as_u64(), UINT64_MAX);
  EXPECT_EQ(root.find("")->size(), 0u);
  EXPECT_FALSE(root.find("c"));
  EXPECT_FALSE(a->find("a"));
  EXPECT_EQ(items[0].size(), 0u);
}

TEST(JsonTest, KeepsTheOrderOfMembers) {
  const JsonDocument document = parsed(R"({"z": {"y": [[], [1, [2]]]}, "a": 3, "m": "x"})");
  std::string keys;
  for (const auto& [key, value] : document.root())
    keys += std::string(key) + json_text(value) + " ";
  EXPECT_EQ(keys, "zan object a3 m'x' ");
}

TEST(JsonTest, ViewsOutliveAMove) {
  JsonDocument document = parsed(R"(["s"])");
  const Json root = document.root();
  const JsonDocument moved = std::move(document);
  EXPECT_EQ((*root.begin()).value.as_string(), "s");
}

// Where a string stands as it is meant, the text is not copied; after strings with escapes too.
TEST(JsonTest, PlainStringsAreViewsOfTheText) {
  const std::string text = R"({"a\"b": "\\", "plain": ["x", "\u0041", "", "y\n", "zz"]})";
  const JsonDocument document = parsed(text);
  EXPECT_EQ(document.root().find("a\"b")->as_string(), "\\");
  std::string all;
  for (const auto& [key, item] : *document.root().find("plain")) {
    const std::string_view found = *item.as_string();
    all += std::string(found) + "|";
    const bool is_view = found.data() >= text.data() && found.data() < text.data() + text.size();
    EXPECT_EQ(is_view, found == "x" || found == "" || found == "zz") << found;
  }
  EXPECT_EQ(all, "x|A||y\n|zz|");
}

TEST(JsonTest, CopiesOfStringsHaveALimit) {
  const JsonLimits limits = {.copied_bytes = 4};
  EXPECT_TRUE(JsonDocument::parse(R"(["123456789", "\n12", "\n"])", limits));
  expect_refused(R"(["123456789", "\n12", "\n3"])", ErrorCode::unsupported,
                 "more than 4 bytes of strings with escapes", limits);
}

TEST(JsonTest, RefusesWhatIsNoJson) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\" 1}", "{\"a\":1}x", "nul", "[1e999]", "'a'",
                           "[\"\xff\"]", "[\"\\ud800\"]", "[\"\t\"]", "{1:2}", "[01]"}) {
    expect_refused(text, ErrorCode::damaged, "not JSON: ");
  }
  expect_refused("{\"a\":\n [1, x]}", ErrorCode::damaged, "line 2, column 6");
}

TEST(JsonTest, RefusesAKeyTwiceInOneObject) {
  expect_refused(R"({"a": 1, "b": {"x": 1}, "\u0061": 2})", ErrorCode::damaged, "key 'a' twice");
  expect_refused(R"([{"b": {"x": 1, "y": 2, "x": {}}}])", ErrorCode::damaged, "key 'x' twice");
  parsed(R"({"a": {"a": 1}, "b": {"a": 1}})");
}

TEST(JsonTest, RefusesDepthOnAHeapOfLevels) {
  const std::string deep(1 << 20, '[');
  expect_refused(deep, ErrorCode::unsupported, "deeper than 64");
  expect_refused("[[[1]]]", ErrorCode::unsupported, "deeper than 2", {.depth = 2});
  EXPECT_TRUE(JsonDocument::parse("[[[1]]]", {.depth = 3}));
}

TEST(JsonTest, RefusesWhatIsBeyondItsLimits) {
  expect_refused("[1,2,3]", ErrorCode::unsupported, "more than 3 values", {.values = 3});
  EXPECT_TRUE(JsonDocument::parse("[1,2,3]", {.values = 4}));
  const JsonLimits limits = {.token_bytes = 5};
  for (const char* text : {"[\"123456\"]", "[1234567]", "[      1]", "[\"\\\"\\\"\\\"\"]"}) {
    expect_refused(text, ErrorCode::unsupported, "more than 5 bytes at byte", limits);
  }
  EXPECT_TRUE(JsonDocument::parse("[\"12345\" , \"1234\"]", limits));
}

}  // namespace
}  // namespace tsq
