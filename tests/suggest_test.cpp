#include "tools/suggest.h"

#include <gtest/gtest.h>

namespace tsq::tool {
namespace {

TEST(Suggest, DistancesFromTheLiterature) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // optimal string alignment, where Damerau's is 2
  EXPECT_EQ(edit_distance("tmep", "temp"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(Suggest, TheNearestWithinAThirdOfTheLetters) {
  const std::vector<std::string> names = {"--temp", "--top-k", "--top-p", "--threads"};
  EXPECT_EQ(nearest("--tmep", names), "--temp");
  EXPECT_EQ(nearest("-temp", names), "--temp");
  EXPECT_EQ(nearest("--topk", names), "--top-k");
  EXPECT_EQ(nearest("--top-q", names), "--top-k");  // the first of equals
  EXPECT_EQ(nearest("--thread", names), "--threads");
  EXPECT_EQ(nearest("--tpm", names), "");  // two of three letters would change
  EXPECT_EQ(nearest("-hf", names), "");
  EXPECT_EQ(nearest("--", names), "");
  EXPECT_EQ(nearest("--" + std::string(1000, 't'), names), "");
}

TEST(Suggest, EndsAMessage) {
  EXPECT_EQ(see_help("--tmep", {"--temp"}, "tsq run"),
            "; did you mean '--temp'? see 'tsq run --help'");
  EXPECT_EQ(see_help("--xyz", {"--temp"}, "tsq"), "; see 'tsq --help'");
}

}  // namespace
}  // namespace tsq::tool
