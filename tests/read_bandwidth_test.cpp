#include "bench/read_bandwidth.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tsq::bench
