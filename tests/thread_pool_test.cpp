#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
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
        ASSERT_EQ(first % grain, 0u);
        ASSERT_TRUE(last % grain == 0 || last == count);
        for (std::size_t i = first; i < last; ++i) ++seen[i];
      });
      for (const auto& n : seen) ASSERT_EQ(n.load(), 1) << count << " by " << grain;
    }
  }
}

// A thread that takes the first piece and is held there keeps little of the work to itself, and the
// last pieces are the smallest.
TEST(ThreadPoolTest, SharesOutLessTowardsTheEnd) {
  ThreadPool pool(2);
  std::vector<std::size_t> sizes(4096);
  pool.parallel_for(4096, 2, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) sizes[i] = last - first;
  });
  EXPECT_LE(sizes.front(), 4096u / 8);
  EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
  EXPECT_EQ(sizes.back(), 2u);
}

// Each of two pieces waits for the other to begin.
TEST(ThreadPoolTest, RunsPiecesAtOnce) {
  ThreadPool pool(2);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> begun{0};
    pool.parallel_for(2, 1, [&](std::size_t, std::size_t) {
      ++begun;
      while (begun.load() != 2) std::this_thread::yield();
    });
  }
}

// Workers that have no core are not waited for: on however few of them, the work goes on.
TEST(ThreadPoolTest, ManyMoreThreadsThanCores) {
  ThreadPool pool(64);
  std::size_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    std::atomic<std::size_t> sum{0};
    pool.parallel_for(100, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) sum += i;
    });
    total += sum;
  }
  EXPECT_EQ(total, 2000u * (99 * 100 / 2));
}

// The caller sleeps until a worker that takes its time has left.
TEST(ThreadPoolTest, WaitsForASlowWorker) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> begun{0}, ended{0};
    pool.parallel_for(2, 1, [&](std::size_t, std::size_t) {
      ++begun;
      while (begun.load() != 2) std::this_thread::yield();
      if (std::this_thread::get_id() != caller) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      ++ended;
    });
    EXPECT_EQ(ended.load(), 2);
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
