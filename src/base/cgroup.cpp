#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tsq {
namespace {

// The path of this process's group: of version 1's controller, or of version 2 for "".
std::optional<std::string> own_group(const std::string& self, std::string_view controller) {
  std::ifstream in(self);  // lines of "4:cpu,cpuacct:/path", version 2's "0::/path"
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    if (list == controller) return line.substr(second + 1);
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == controller) return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

// The folders of this process's group and of those around it, innermost first. In a container the
// group's path may not exist below its mount; the mount itself then stands for it.
std::vector<std::string> folders(const CgroupFiles& files, std::string_view controller) {
  const std::string mount = files.mount + (controller.empty() ? "" : "/") + std::string(controller);
  std::vector<std::string> found;
  auto path = own_group(files.self, controller);
  if (!path) return found;
  while (path->size() > 1) {
    found.push_back(mount + *path);
    path->resize(path->rfind('/'));
  }
  found.push_back(mount);
  return found;
}

// The first number of a file; nothing for "max" or where there is none.
std::optional<std::uint64_t> number(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value;
  if (in >> value) return value;
  return std::nullopt;
}

// A line "key number" of a file.
std::uint64_t entry(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string name;
  for (std::uint64_t value; in >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

template <class T>
void tighten(std::optional<T>& limit, T other) {
  limit = limit ? std::min(*limit, other) : other;
}

std::optional<std::uint64_t> left(std::optional<std::uint64_t> limit,
                                  std::optional<std::uint64_t> used, std::uint64_t cache) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // version 1 writes a huge number
  if (!limit || !used || *limit > kNoLimit) return std::nullopt;
  const std::uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

}  // namespace

std::optional<double> cgroup_processors(const CgroupFiles& files) {
  std::optional<double> limit;
  for (const std::string& folder : folders(files, "")) {
    std::ifstream in(folder + "/cpu.max");  // "150000 100000", or "max 100000"
    double quota = 0, period = 0;
    if (in >> quota >> period && period > 0) tighten(limit, quota / period);
  }
  for (const std::string& folder : folders(files, "cpu")) {
    const auto quota = number(folder + "/cpu.cfs_quota_us");  // -1, which is no number here: none
    const auto period = number(folder + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0 && *quota < std::uint64_t{1} << 60) {
      tighten(limit, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  }
  return limit;
}

std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files) {
  std::optional<std::uint64_t> least;
  for (const std::string& f : folders(files, "")) {
    if (const auto bytes = left(number(f + "/memory.max"), number(f + "/memory.current"),
                                entry(f + "/memory.stat", "inactive_file"))) {
      tighten(least, *bytes);
    }
  }
  for (const std::string& f : folders(files, "memory")) {
    if (const auto bytes =
            left(number(f + "/memory.limit_in_bytes"), number(f + "/memory.usage_in_bytes"),
                 entry(f + "/memory.stat", "total_inactive_file"))) {
      tighten(least, *bytes);
    }
  }
  return least;
}

}  // namespace tsq
