#include "tools/thoughts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace tsq::tool {
namespace {

using Kind = ThoughtSplitter::Kind;

// The text by kind, however it is cut into pieces; '/' stands between kinds.
std::string split(std::string_view text, std::size_t piece, bool in_thought = false) {
  ThoughtSplitter splitter(in_thought);
  std::string parts;
  std::optional<Kind> last;
  const auto add = [&](const std::vector<ThoughtSplitter::Piece>& pieces) {
    for (const auto& [kind, part] : pieces) {
      EXPECT_FALSE(part.empty());
      if (last != kind)
        parts += kind == Kind::tag ? "/tag:" : kind == Kind::thought ? "/thought:" : "/answer:";
      last = kind;
      parts += part;
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    add(splitter.push(text.substr(0, piece)));
  add(splitter.finish());
  return parts;
}

TEST(ThoughtSplitter, PartsAtTheTags) {
  for (const std::size_t piece : {1, 2, 3, 5, 8, 100}) {
    EXPECT_EQ(split("An answer", piece), "/answer:An answer");
    EXPECT_EQ(split("<think>hm</think>\n\nyes", piece),
              "/tag:<think>/thought:hm/tag:</think>/answer:\n\nyes");
    EXPECT_EQ(split("\n <think></think>", piece), "/tag:\n <think></think>");
    EXPECT_EQ(split("hm</think>yes", piece, true), "/thought:hm/tag:</think>/answer:yes");
    EXPECT_EQ(split("hm</thin", piece, true), "/thought:hm</thin");
    EXPECT_EQ(split("a < b </th> <</think>c", piece, true),
              "/thought:a < b </th> </tag:</think>/answer:c");
    EXPECT_EQ(split("<thin", piece), "/answer:<thin");
    EXPECT_EQ(split("<thinner>", piece), "/answer:<thinner>");
    EXPECT_EQ(split("x<think>y</think>", piece), "/answer:x<think>y</think>");
    EXPECT_EQ(split("", piece, true), "");
    EXPECT_EQ(split("\n<think>\nhm</think>yes", piece, true),
              "/tag:\n<think>/thought:\nhm/tag:</think>/answer:yes");
    EXPECT_EQ(split("\n<thin", piece, true), "/thought:\n<thin");
    EXPECT_EQ(split(" </think>yes", piece, true), "/thought: /tag:</think>/answer:yes");
  }
}

TEST(ThoughtSplitter, WithholdsOnlyWhatMayBeATag) {
  ThoughtSplitter splitter(true);
  EXPECT_TRUE(splitter.in_thought());
  const auto pieces = splitter.push("a thought </t");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "a thought ");
  EXPECT_TRUE(splitter.in_thought());
  splitter.push("hink>");
  EXPECT_FALSE(splitter.in_thought());
}

}  // namespace
}  // namespace tsq::tool
