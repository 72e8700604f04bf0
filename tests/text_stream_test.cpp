#include "tools/text_stream.h"

#include <gtest/gtest.h>

namespace tsq::tool {
namespace {

// Pushes the text byte by byte: what is out after each byte, joined, and the rest.
struct Shown {
  std::string during, at_end;
};
Shown push_bytes(TextStream& stream, std::string_view text) {
  Shown shown;
  for (const char byte : text) shown.during += stream.push({&byte, 1});
  shown.at_end = stream.finish();
  return shown;
}

TEST(TextStream, ShowsPlainTextAtOnce) {
  TextStream stream({});
  EXPECT_EQ(stream.push("Once upon"), "Once upon");
  EXPECT_EQ(stream.push(" a time"), " a time");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, HoldsACharacterUntilItIsWhole) {
  TextStream stream({});
  EXPECT_EQ(stream.push("caf\xc3"), "caf");
  EXPECT_EQ(stream.push("\xa9 \xf0\x9f"), "é ");
  EXPECT_EQ(stream.push("\xa6"), "");
  EXPECT_EQ(stream.push("\x8a."), "🦊.");
}

TEST(TextStream, DropsACharacterThatNeverBecameWhole) {
  TextStream stream({});
  EXPECT_EQ(stream.push("ok \xe2\x82"), "ok ");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, ReplacesWhatIsNoUtf8) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xff"
                        "b\xc3("),
            "a\uFFFDb\uFFFD(");
  EXPECT_EQ(stream.push("\x80"), "\uFFFD");
}

TEST(TextStream, EndsBeforeAStopString) {
  TextStream stream({"</s>"});
  const auto [during, at_end] = push_bytes(stream, "the end</s> and more");
  EXPECT_EQ(during, "the end");
  EXPECT_EQ(at_end, "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, ShowsWhatOnlyBeganLikeAStopString) {
  TextStream stream({"</s>"});
  EXPECT_EQ(stream.push("a </"), "a ");
  EXPECT_EQ(stream.push("b>"), "</b>");
  EXPECT_EQ(stream.push("</s"), "");
  EXPECT_EQ(stream.finish(), "</s");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, FindsAStopStringThatOverlapsItself) {
  TextStream stream({"aab"});
  const auto [during, at_end] = push_bytes(stream, "aaaab");
  EXPECT_EQ(during + at_end, "aa");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, TakesTheFirstOfSeveralStopStrings) {
  TextStream stream({"world", "o"});
  EXPECT_EQ(stream.push("hello world"), "hell");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, StopStringsMayEndInsideAToken) {
  TextStream stream({"é"});
  EXPECT_EQ(stream.push("caf\xc3"), "caf");
  EXPECT_EQ(stream.push("\xa9s"), "");
  EXPECT_TRUE(stream.stopped());
}

}  // namespace
}  // namespace tsq::tool
