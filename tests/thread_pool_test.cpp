#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

namespace tsq {
namespace {

TEST(ThreadPoolTest, RunsOnEveryThreadOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
      pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
      for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPoolTest, GivesEveryIndexOnce) {
  ThreadPool pool(3);
  for (const std::size_t count : {0, 1, 2, 7, 64, 1000}) {
    for (const std::size_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(count);
      pool.parallel_for(count, grain, [&](std::size_t first, std::size_t last) {
        ASSERT_LE(last - first, std::max(grain, std::size_t{1}));
        for (std::size_t i = first; i < last; ++i) ++seen[i];
      });
      for (const auto& n : seen) ASSERT_EQ(n.load(), 1) << count << " by " << grain;
    }
  }
}

// What a task wrote is seen by the caller, also after the workers have gone to sleep in between.
TEST(ThreadPoolTest, JoinsAfterSleeping) {
  ThreadPool pool(4);
  std::vector<int> values(4);
  for (int round = 1; round <= 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.run([&](int thread) { values[static_cast<std::size_t>(thread)] = round; });
    EXPECT_EQ(values, std::vector<int>(4, round));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need the address space
// A process that may not start the threads gets an exception, with those that did start joined.
TEST(ThreadPoolTest, ThrowsWhereThreadsCannotBeStarted) {
  const auto start_too_many = [] {
    const rlimit address_space = {512u << 20, 512u << 20};
    setrlimit(RLIMIT_AS, &address_space);
    try {
      ThreadPool pool(500);
    } catch (const std::system_error&) {
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(7), "");
}
#endif

TEST(ThreadPoolTest, CountsTheProcessors) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GE(usable_threads(), usable_cores());
  EXPECT_LE(usable_threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tsq
