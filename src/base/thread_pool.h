// Fork and join over a fixed set of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace tsq {

// A pool of one starts no thread. Used by one thread at a time; a task must not throw and must not
// use the pool.
//
// Nobody waits for a thread that has not begun: what is left is done by those that run, and a
// worker without a core is not missed. Idle workers spin, then yield, then sleep.
class ThreadPool {
 public:
  // threads >= 1, the caller's included. Throws std::system_error if one cannot be started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // task(i) once for each i below threads(), on as many threads as are free.
  void run(FunctionRef<void(int)> task);

  // task(first, last) over [0, count) in pieces handed out as threads become free: large ones while
  // much is left, towards the end of `grain` (the last may be shorter), so that a slow core does
  // not hold the others. Each is a multiple of grain.
  void parallel_for(std::size_t count, std::size_t grain,
                    FunctionRef<void(std::size_t, std::size_t)> task);

 private:
  void work();
  void take_pieces();
  void leave();
  void await_workers();
  void stop();

  std::vector<std::thread> workers_;
  // What is to be done: written while no worker is in, read by those that have come in.
  const FunctionRef<void(std::size_t, std::size_t)>* task_ = nullptr;
  std::size_t count_ = 0, grain_ = 1;
  // The word that is spun on: a generation | whether to stop | whether workers may come in | how
  // many are in.
  alignas(64) std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> sleepers_{0};        // workers that sleep on state_, or are about to
  std::atomic<std::uint32_t> caller_sleeps_{0};   // until the last worker has left
  alignas(64) std::atomic<std::size_t> next_{0};  // the first index that nobody has taken
};

// What limits the processors that this process may keep busy.
struct CoreLimits {
  int cores = 1;                // physical ones of the machine
  int affinity = 1;             // of these, within the process's affinity
  std::optional<double> quota;  // processors' worth of time, by its control groups
};
CoreLimits core_limits();

// Physical cores within affinity, at most the quota (rounded up); at least 1.
int usable_cores();
// The same, hyper-threads counted singly: the most threads that make sense.
int usable_threads();
// The threads that run where a user asks for `wanted` (0: one a core).
int threads_for(int wanted);

}  // namespace tsq
