// core_limits() and what follows from them: what the scheduler will give this process.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cgroup.h"
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

// The control group's quota in whole processors, rounded up.
int quota() {
  const auto processors = cgroup_processors();
  if (!processors || *processors > 1e6) return 1 << 20;
  return std::max(1, static_cast<int>(std::ceil(*processors)));
}

constexpr std::size_t kMostProcessors = 1 << 16;
const std::string kProcessors = "/sys/devices/system/cpu/";

int physical_cores(const std::vector<int>& processors) {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int cpu : processors) {
    const std::string topology = kProcessors + "cpu" + std::to_string(cpu) + "/topology/";
    std::string core = read_text(topology + "core_id");
    if (core.empty()) core = "cpu" + std::to_string(cpu);
    cores.emplace(read_text(topology + "physical_package_id"), std::move(core));
  }
  return static_cast<int>(cores.size());
}

// All that run, whatever the affinity: "0-3,8-11".
std::vector<int> online_processors() {
  std::vector<int> online;
  std::istringstream list(read_text(kProcessors + "online"));
  for (int first = 0; list >> first; list.ignore()) {
    int last = first;
    if (list.peek() == '-') list.ignore() >> last;
    for (int cpu = first; cpu <= last && online.size() < kMostProcessors; ++cpu)
      online.push_back(cpu);
  }
  return online.empty() ? allowed_processors() : online;
}

}  // namespace

CoreLimits core_limits() {
  return {physical_cores(online_processors()), physical_cores(allowed_processors()),
          cgroup_processors()};
}

int usable_cores() { return std::clamp(physical_cores(allowed_processors()), 1, quota()); }

int usable_threads() {
  return std::clamp(static_cast<int>(allowed_processors().size()), 1, quota());
}

int threads_for(int wanted) {
  return wanted == 0 ? usable_cores() : std::min(wanted, usable_threads());
}

}  // namespace tsq
