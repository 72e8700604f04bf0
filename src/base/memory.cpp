#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/cgroup.h"

namespace tsq {
namespace {

std::optional<std::uint64_t> system_available() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kibibytes; in >> key >> kibibytes; std::getline(in, unit)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> available_memory() {
  const auto system = system_available(), group = cgroup_memory_left();
  if (system && group) return std::min(*system, *group);
  return system ? system : group;
}

}  // namespace tsq
