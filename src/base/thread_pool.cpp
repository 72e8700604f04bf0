#include "base/thread_pool.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tsq {
namespace {

constexpr std::uint32_t kWorker = 1;  // one worker that is in
constexpr std::uint32_t kWorkers = 0xFFFF;
constexpr std::uint32_t kOpen = 1U << 16;
constexpr std::uint32_t kStop = 1U << 17;
constexpr std::uint32_t kGeneration = 1U << 18;

// Pieces that each thread would get of what is left.
constexpr std::size_t kPieces = 4;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What to do between two looks at a word that has not changed: spin through the gap between two
// operations of a token, then leave the core to whoever wants it, and in the end sleep.
class Patience {
 public:
  // False when it is time to sleep.
  bool wait() {
    for (int i = 0; i < kRelax; ++i) relax();
    const auto waited = Clock::now() - start_;
    if (waited > kYield) return false;
    if (waited > kSpin) std::this_thread::yield();
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kRelax = 4;
  static constexpr std::chrono::microseconds kSpin{10};
  static constexpr std::chrono::microseconds kYield{100};

  Clock::time_point start_ = Clock::now();
};

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
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {  // no more threads: those that run must end before their handles go
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  state_.fetch_or(kStop);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(FunctionRef<void(int)> task) {
  parallel_for(static_cast<std::size_t>(threads()), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) task(static_cast<int>(i));
  });
}

void ThreadPool::parallel_for(std::size_t count, std::size_t grain,
                              FunctionRef<void(std::size_t, std::size_t)> task) {
  if (count <= grain || workers_.empty()) {
    if (count != 0) task(0, count);
    return;
  }
  task_ = &task;
  count_ = count;
  grain_ = grain;
  next_.store(0, std::memory_order_relaxed);
  // Nobody else writes a closed state. A worker counts itself a sleeper before it looks at the
  // state for the last time: either it sees this one or it is seen here.
  state_.store((state_.load(std::memory_order_relaxed) + kGeneration) | kOpen);
  if (sleepers_.load() != 0) state_.notify_all();
  take_pieces();
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  await_workers();
}

void ThreadPool::take_pieces() {
  const std::size_t shares = kPieces * static_cast<std::size_t>(threads());
  std::size_t first = next_.load(std::memory_order_relaxed);
  while (first < count_) {
    const std::size_t share = (count_ - first) / shares / grain_ * grain_;
    const std::size_t last = first + std::min(count_ - first, std::max(grain_, share));
    if (!next_.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
    (*task_)(first, last);
    first = next_.load(std::memory_order_relaxed);
  }
}

void ThreadPool::await_workers() {
  const auto working = [&] { return (state_.load() & kWorkers) != 0; };
  for (Patience patience; working();) {
    if (patience.wait()) continue;
    caller_sleeps_.store(1);
    if (working()) caller_sleeps_.wait(1);
    caller_sleeps_.store(0);
  }
}

void ThreadPool::leave() {
  const std::uint32_t before = state_.fetch_sub(kWorker);
  if ((before & (kWorkers | kOpen)) != kWorker) return;
  if (caller_sleeps_.exchange(0) != 0) caller_sleeps_.notify_one();
}

void ThreadPool::work() {
  std::uint32_t done = 0;  // the generation that it was last in
  for (Patience patience;;) {
    std::uint32_t state = state_.load(std::memory_order_acquire);
    if ((state & kStop) != 0) return;
    const auto is_new = [&] { return (state & kOpen) != 0 && state / kGeneration != done; };
    if (is_new()) {
      if (!state_.compare_exchange_weak(state, state + kWorker, std::memory_order_acq_rel))
        continue;
      done = state / kGeneration;
      take_pieces();
      leave();
      patience = {};
    } else if (!patience.wait()) {
      sleepers_.fetch_add(1);
      state = state_.load();
      if (!is_new() && (state & kStop) == 0) state_.wait(state);
      sleepers_.fetch_sub(1);
      // There was work, if perhaps over already: more will follow.
      if (state_.load() / kGeneration != state / kGeneration) patience = {};
    }
  }
}

}  // namespace tsq
