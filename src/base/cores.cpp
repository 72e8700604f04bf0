// usable_cores(), usable_threads(): what the scheduler will give this process.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace tsq {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  return text;
}

// Logical processors in this process's affinity mask.
std::vector<int> allowed_processors() {
  std::vector<int> allowed;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
    }
  }
#endif
  if (allowed.empty()) {
    const int n = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int cpu = 0; cpu < n; ++cpu) allowed.push_back(cpu);
  }
  return allowed;
}

// The cgroup's CPU quota in processors, rounded up; a large number without one.
int quota() {
  constexpr int kNone = 1 << 20;
  // cgroup v2: "max 100000" or "150000 100000"; the process's own group may be nested.
  std::string group = read_text("/proc/self/cgroup");
  const std::size_t colon = group.rfind(':');
  group = colon == std::string::npos ? "" : group.substr(colon + 1);
  for (const std::string& path :
       {"/sys/fs/cgroup" + group + "/cpu.max", std::string("/sys/fs/cgroup/cpu.max")}) {
    const std::string text = read_text(path);
    double limit = 0, period = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, limit);
    if (error != std::errc() || next == end) continue;
    if (std::from_chars(next + 1, end, period).ec != std::errc() || period <= 0) continue;
    return std::max(1, static_cast<int>(std::ceil(limit / period)));
  }
  return kNone;
}

}  // namespace

int usable_cores() {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int cpu : allowed_processors()) {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string core = read_text(topology + "core_id");
    if (core.empty()) core = "cpu" + std::to_string(cpu);
    cores.emplace(read_text(topology + "physical_package_id"), std::move(core));
  }
  return std::clamp(static_cast<int>(cores.size()), 1, quota());
}

int usable_threads() {
  return std::clamp(static_cast<int>(allowed_processors().size()), 1, quota());
}

}  // namespace tsq
