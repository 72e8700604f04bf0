#include "bench/read_bandwidth.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "base/buffer.h"

namespace tsq::bench {
namespace {

// Nothing of what they are timed for is left out.
TEST(ReadBandwidth, EveryReaderReadsEveryLine) {
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{4096}, std::size_t{40960 + 512}}) {
    Buffer<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    Word expected{};
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = (i + 1) * 0x9e3779b97f4a7c15u;
      expected[i % 4] ^= words[i];
    }
    for (std::size_t reader = 0; reader < kReaders; ++reader)
      EXPECT_EQ(read_all(reader, std::as_bytes(words.span())), expected) << reader << " " << bytes;
  }
}

TEST(ReadBandwidth, EveryThreadRunsOnce) {
  std::atomic<int> ran{0};
  EXPECT_GE(slowest_seconds(3, Clock::wall, [&](int t) { ran += 1 << 4 * t; }), 0);
  EXPECT_EQ(ran, 0x111);
}

TEST(ReadBandwidth, TheMedianOfAnEvenNumberLiesBetween) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 2}), 2);
  EXPECT_EQ(median({8, 1, 2, 4}), 3);
}

// What reads as fast as the readers reads at their speed, half as fast at half of it.
TEST(ReadBandwidth, SharesAreOfTheReadingAroundThem) {
  const Buffer<std::byte> bytes(1 << 20);
  ReadCeiling ceiling(1, Clock::cpu);
  for (int i = 0; i < 3; ++i) ceiling.measure(bytes.span());
  const double speed = ceiling.read_speed();
  EXPECT_GT(speed, 0);
  const double share = ceiling.share(std::vector<double>{speed, speed});
  EXPECT_GT(share, 0.1);
  EXPECT_DOUBLE_EQ(ceiling.share(std::vector<double>{speed / 2, speed / 2}), share / 2);
}

}  // namespace
}  // namespace tsq::bench
