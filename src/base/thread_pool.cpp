#include "base/thread_pool.h"

#include <signal.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tsq {
namespace {

// About 20 microseconds: longer than the gap between two operations of one token, short enough to
// leave the core to others between tokens.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns a value of `word` that differs from `old`.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

// Threads that are started meanwhile take no signals: those are for the threads of the program.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const BlockedSignals blocked;
  workers_.reserve(static_cast<std::size_t>(threads) - 1);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (...) {  // no more threads: those that run must end before their handles go
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(FunctionRef<void(int)> task) {
  if (workers_.empty()) return task(0);
  task_ = &task;
  pending_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  task(0);
  for (std::uint32_t left = pending_.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(pending_, left);
  }
}

void ThreadPool::work(int thread) {
  for (std::uint32_t seen = 0;;) {
    seen = wait_for_change(generation_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*task_)(thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

void ThreadPool::parallel_for(std::size_t count, std::size_t grain,
                              FunctionRef<void(std::size_t, std::size_t)> task) {
  if (count <= grain || workers_.empty()) {
    if (count != 0) task(0, count);
    return;
  }
  std::atomic<std::size_t> next{0};
  run([&](int) {
    for (;;) {
      const std::size_t first = next.fetch_add(grain, std::memory_order_relaxed);
      if (first >= count) return;
      task(first, std::min(count, first + grain));
    }
  });
}

}  // namespace tsq
