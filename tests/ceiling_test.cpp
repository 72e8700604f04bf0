#include "bench/ceiling.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "base/buffer.h"
#include "bench/read_bandwidth.h"

namespace tsq::bench {
namespace {

TEST(Ceiling, EveryThreadRunsOnce) {
  std::atomic<int> ran{0};
  EXPECT_GE(slowest_seconds(3, Clock::wall, [&](int t) { ran += 1 << 4 * t; }), 0);
  EXPECT_EQ(ran, 0x111);
}

TEST(Ceiling, TheMedianOfAnEvenNumberLiesBetween) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 2}), 2);
  EXPECT_EQ(median({8, 1, 2, 4}), 3);
}

// Three rounds between four measurements of two ways: each round meets the mean of its neighbours,
// and the second way, whose median is the higher, is the limit.
TEST(Ceiling, SharesAreOfTheMeasurementsAroundThem) {
  Ceiling ceiling(2);
  for (const auto& ways :
       {std::array{4.0, 10.0}, std::array{4.0, 10.0}, std::array{4.0, 6.0}, std::array{4.0, 10.0}})
    ceiling.add(ways);
  EXPECT_EQ(ceiling.speed(), 10);
  const auto share = ceiling.share(std::array{5.0, 4.0, 2.0});  // of 10, 8 and 8
  EXPECT_EQ(share.median, 0.5);
  EXPECT_EQ(share.best, 0.5);
  const auto other = ceiling.share(std::array{5.0, 8.0, 2.0});
  EXPECT_EQ(other.median, 0.5);
  EXPECT_EQ(other.best, 1);
}

// Two rounds of two pieces: 2 and 6 take as long as 3 and 3, beside limits of 8 and 12.
TEST(Ceiling, ARoundOfPiecesIsWhatTheyReachTogether) {
  Ceiling ceiling(1);
  for (const double speed : {6.0, 10.0, 14.0, 14.0, 14.0}) ceiling.add(std::array{speed});
  const auto share = ceiling.share(std::array{2.0, 6.0, 7.0, 7.0}, 2);
  EXPECT_DOUBLE_EQ(share.median, (0.3 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(share.best, 0.5);
}

// The fastest way of each measurement counts: 10, 10, 8 and 10.
TEST(Ceiling, MovesFromItsSlowestMeasurementToItsFastest) {
  Ceiling ceiling(2);
  for (const auto& ways :
       {std::array{8.0, 10.0}, std::array{8.0, 10.0}, std::array{8.0, 6.0}, std::array{10.0, 4.0}})
    ceiling.add(ways);
  EXPECT_DOUBLE_EQ(ceiling.moved(), 0.2);
}

// What reads half as fast as another has half of its share.
TEST(Ceiling, SharesOfMeasuredReading) {
  const Buffer<std::byte> bytes(1 << 20);
  ReadCeiling ceiling(1, Clock::cpu);
  for (int i = 0; i < 3; ++i) ceiling.measure(bytes.span());
  const double speed = ceiling.speed();
  EXPECT_GT(speed, 0);
  const double share = ceiling.share(std::array{speed, speed}).median;
  EXPECT_GT(share, 0.1);
  EXPECT_DOUBLE_EQ(ceiling.share(std::array{speed / 2, speed / 2}).median, share / 2);
}

}  // namespace
}  // namespace tsq::bench
