#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tsq {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// The number in a file that holds one, kUnknown for "max" or no file.
std::uint64_t read_number(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value;
  return in >> value ? value : kUnknown;
}

std::uint64_t system_available() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kibibytes; in >> key >> kibibytes; std::getline(in, unit)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return kUnknown;
}

std::uint64_t cgroup_available() {
  const std::uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return limit > used ? limit - used : 0;
}

}  // namespace

std::uint64_t available_memory() {
  const std::uint64_t available = std::min(system_available(), cgroup_available());
  return available == kUnknown ? 0 : available;
}

}  // namespace tsq
