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

// The caller is thread 0, so a pool of one starts no thread. Used by one thread at a time; a task
// must not throw and must not use the pool.
class ThreadPool {
 public:
  // threads >= 1. Throws std::system_error if one cannot be started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // task(thread) once on every thread; returns when all are done.
  void run(FunctionRef<void(int)> task);

  // task(first, last) over [0, count) in pieces of `grain` (the last may be shorter), handed out as
  // threads become free.
  void parallel_for(std::size_t count, std::size_t grain,
                    FunctionRef<void(std::size_t, std::size_t)> task);

 private:
  void work(int thread);
  void stop();

  std::vector<std::thread> workers_;
  const FunctionRef<void(int)>* task_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint32_t> pending_{0};
  std::atomic<bool> stop_{false};
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
