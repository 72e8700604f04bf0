#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace tsq {
namespace {

namespace fs = std::filesystem;

// A tree of control groups as /sys/fs/cgroup shows one.
class CgroupTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  CgroupFiles files(const std::string& self) {
    write("self", self);
    return {folder_.path().string(), (folder_.path() / "self").string()};
  }

  TemporaryFolder folder_;
};

TEST_F(CgroupTest, NoneSetsNoLimit) {
  EXPECT_EQ(cgroup_processors(files("0::/\n")), std::nullopt);
  EXPECT_EQ(cgroup_memory_left(files("0::/\n")), std::nullopt);
  EXPECT_EQ(cgroup_processors({"/absent", "/absent"}), std::nullopt);
}

TEST_F(CgroupTest, Version2TakesTheTightestOfNestedGroups) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_processors(files("0::/a/b/c\n")), 1.5);
  EXPECT_EQ(cgroup_processors(files("0::/a/b\n")), 1.5);
  write("a/b/c/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_processors(files("0::/a/b/c\n")), 0.5);
  EXPECT_EQ(cgroup_processors(files("0::/\n")), std::nullopt);

  write("a/memory.max", "10000\n");
  write("a/memory.current", "4000\n");
  write("a/memory.stat", "anon 1\ninactive_file 1500\n");
  write("a/b/memory.max", "max\n");
  write("a/b/memory.current", "3000\n");
  EXPECT_EQ(cgroup_memory_left(files("0::/a/b\n")), 7500u);  // 10000 - (4000 - 1500)
}

TEST_F(CgroupTest, Version2InAContainerThatSeesOnlyItsOwn) {
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_processors(files("0::/\n")), 2.0);
  EXPECT_EQ(cgroup_processors(files("0::/docker/0123\n")), 2.0);  // a path of the host
}

TEST_F(CgroupTest, Version1) {
  const std::string self = "4:memory:/m\n3:cpu,cpuacct:/a/b\n1:name=systemd:/s\n";
  write("cpu/a/cpu.cfs_quota_us", "300000\n");
  write("cpu/a/cpu.cfs_period_us", "100000\n");
  write("cpu/a/b/cpu.cfs_quota_us", "-1\n");
  write("cpu/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_processors(files(self)), 3.0);
  write("cpu/a/b/cpu.cfs_quota_us", "25000\n");
  EXPECT_EQ(cgroup_processors(files(self)), 0.25);

  write("memory/m/memory.limit_in_bytes", "8000\n");
  write("memory/m/memory.usage_in_bytes", "9000\n");
  write("memory/m/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");  // none, as version 1 writes it
  write("memory/memory.usage_in_bytes", "12345\n");
  EXPECT_EQ(cgroup_memory_left(files(self)), 1000u);
}

TEST_F(CgroupTest, ALineOfVersion1IsNoGroupOfVersion2) {
  write("s/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_processors(files("1:name=systemd:/s\n0::/\n")), std::nullopt);
}

}  // namespace
}  // namespace tsq
