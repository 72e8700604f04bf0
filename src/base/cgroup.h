// The limits that a control group (Linux, version 1 or 2) sets on this process: its own group's and
// those of the groups around it, the tightest counting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tsq {

// Where the system shows them. Tests have folders of their own.
struct CgroupFiles {
  std::string mount = "/sys/fs/cgroup", self = "/proc/self/cgroup";
};

// Processors' worth of time; nothing without a quota.
std::optional<double> cgroup_processors(const CgroupFiles& files = {});

// Bytes left under the memory limit, what the page cache holds and could give back included;
// nothing without a limit.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

}  // namespace tsq
