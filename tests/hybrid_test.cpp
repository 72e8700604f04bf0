// Sessions of a model with recurrent layers: where they can go back to, what snapshots hold, what a
// failure leaves, what they take.
#include <gtest/gtest.h>

#include <algorithm>

#include "models.h"
#include "tsq/session.h"

namespace tsq {
namespace {

class HybridSessionTest : public testing::Test {
 protected:
  HybridSessionTest() : model_(test::open_model("qwen35_two.gguf")) {}

  Session new_session() const {
    auto session = Session::create(model_, {.context = 700});
    EXPECT_TRUE(session);
    return std::move(*session);
  }
  static std::vector<float> append(Session& session, std::span<const Token> tokens) {
    const auto logits = session.append(tokens);
    EXPECT_TRUE(logits) << logits.error().message();
    return {logits->begin(), logits->end()};
  }
  // The logits after these tokens, of a session that has read nothing else.
  std::vector<float> fresh(std::span<const Token> tokens) const {
    Session session = new_session();
    return append(session, tokens);
  }

  Model model_;
  // Two recurrent layers: 4 heads of 32 by 32 and three inputs of 2 * 2 * 32 + 4 * 32 channels.
  static constexpr std::uint64_t kStateBytes = 2 * 4 * (4 * 32 * 32 + 3 * 256);
  const std::vector<Token> tokens_ = {5, 17, 101, 3, 260, 9, 44, 8};
  const std::vector<Token> other_ = {9, 9, 9};
};

TEST_F(HybridSessionTest, GoesBackToTheStartAlone) {
  Session session = new_session();
  append(session, other_);
  for (const std::int32_t position : {1, 2}) {
    const auto back = session.rewind(position);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(back.error().message(),
              "cannot go back to position " + std::to_string(position) +
                  ": a recurrent model can only go back to a snapshot, a mark or 0 (the last mark "
                  "before is at 0)");
    EXPECT_EQ(session.rewindable(position), 0);
    EXPECT_EQ(session.position(), 3);
  }
  EXPECT_EQ(session.rewindable(3), 3);
  ASSERT_TRUE(session.rewind(3));
  ASSERT_TRUE(session.rewind(0));
  EXPECT_EQ(append(session, tokens_), fresh(tokens_));
}

TEST_F(HybridSessionTest, GoesBackToTheLastMarks) {
  const std::span<const Token> tokens(tokens_);
  Session session = new_session();
  for (const std::size_t at : {2, 4, 6}) {  // the first is one too many
    append(session, tokens.subspan(at - 2, 2));
    ASSERT_TRUE(session.mark());
    ASSERT_TRUE(session.mark());  // the same one
  }
  EXPECT_EQ(session.rewindable(3), 0);
  EXPECT_EQ(session.rewindable(5), 4);
  EXPECT_EQ(session.rewindable(6), 6);
  const std::vector<float> expected = fresh(tokens_);
  for (const std::int32_t mark : {6, 4, 4}) {  // the same one twice
    append(session, other_);
    ASSERT_TRUE(session.rewind(mark));
    EXPECT_EQ(append(session, tokens.subspan(static_cast<std::size_t>(mark))), expected) << mark;
    ASSERT_TRUE(session.rewind(mark));
  }
  append(session, tokens.subspan(4, 2));
  EXPECT_EQ(session.rewindable(5), 4);  // 6 was forgotten on the way back to 4
}

TEST_F(HybridSessionTest, SnapshotsHoldTheState) {
  const std::span<const Token> tokens(tokens_);
  Session session = new_session(), another = new_session();
  append(session, tokens.first(4));
  const auto snapshot = session.snapshot();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->memory_bytes(), 4 * model_.kv_bytes_per_token(false) + kStateBytes);
  append(session, other_);
  append(another, other_);
  ASSERT_TRUE(another.mark());
  append(another, other_);
  for (Session* s : {&session, &another, &session}) {
    ASSERT_TRUE(s->restore(*snapshot));
    EXPECT_EQ(s->rewindable(3), 0);  // marks are of what was there before
    EXPECT_EQ(append(*s, tokens.subspan(4)), fresh(tokens_));
  }
}

TEST_F(HybridSessionTest, AFailureGoesBackToTheLastMark) {
  const std::vector<Token> prompt(600, 7);  // two batches
  const auto cancel_at = [](std::int32_t at) {
    return [at](std::int32_t done, std::int32_t) { return done < at; };
  };
  Session session = new_session();
  append(session, other_);
  EXPECT_EQ(session.append(prompt, Logits::last, cancel_at(0)).error().code(),
            ErrorCode::cancelled);
  EXPECT_EQ(session.position(), 3);  // nothing was computed
  EXPECT_FALSE(session.append(prompt, Logits::last, cancel_at(1)));
  EXPECT_EQ(session.position(), 0);
  append(session, std::span(tokens_).first(4));
  ASSERT_TRUE(session.mark());
  append(session, other_);
  EXPECT_FALSE(session.append(prompt, Logits::last, cancel_at(1)));
  EXPECT_EQ(session.position(), 4);
  EXPECT_EQ(append(session, std::span(tokens_).subspan(4)), fresh(tokens_));
}

TEST_F(HybridSessionTest, TakesWhatItPlanned) {
  // One layer attends: keys and values of 32, f16.
  EXPECT_EQ(model_.kv_bytes_per_token(false), 2 * 32 * 2);
  for (const std::int32_t context : {1, 16, 512, 700}) {
    const SessionOptions options = {.context = context};
    const auto plan = Session::plan(model_, options);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->state_bytes, kStateBytes);
    auto session = Session::create(model_, options);
    ASSERT_TRUE(session);
    append(*session, std::vector<Token>(static_cast<std::size_t>(context), 7));
    EXPECT_EQ(session->memory_bytes(), plan->kv_bytes + plan->state_bytes + plan->scratch_bytes);
  }
}

}  // namespace
}  // namespace tsq
