// What a process may still take, from trees of files such as kernels have.
#include "harness/run/memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

class MemoryTest : public testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root() / file).parent_path());
    std::ofstream(root() / file) << text;
  }
  fs::path root() const { return folder_.path(); }
  AvailableMemory available() const { return available_memory(root()).value_or(AvailableMemory{}); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(MemoryTest, IsWhatTheKernelSaysIsAvailable) {
  EXPECT_FALSE(available_memory(root()));
  write("proc/meminfo", "MemTotal:       100 kB\nMemFree:   10 kB\nMemAvailable:   40 kB\n");
  EXPECT_EQ(available().bytes, 40 * KiB);
  EXPECT_EQ(available().of, "this machine");
}

TEST_F(MemoryTest, IsWhatTheNearestLimitOfACgroupLeaves) {
  write("proc/meminfo", "MemAvailable: 1000 kB\n");
  write("proc/self/cgroup", "0::/a/b\n");
  const fs::path groups = "sys/fs/cgroup";
  write(groups / "a/b/memory.max", "max\n");
  write(groups / "a/b/memory.current", "100\n");
  EXPECT_EQ(available().bytes, 1000 * KiB);
  // The group above limits, too; files that can be dropped do not count.
  write(groups / "a/memory.max", "500000\n");
  write(groups / "a/memory.current", "400000\n");
  write(groups / "a/memory.stat", "anon 1\ninactive_file 150000\n");
  EXPECT_EQ(available().bytes, 250'000U);
  EXPECT_EQ(available().of, "the cgroup /a");
  // A group that holds more than its limit has nothing left.
  write(groups / "a/b/memory.max", "50\n");
  EXPECT_EQ(available().bytes, 0U);
  EXPECT_EQ(available().of, "the cgroup /a/b");
}

TEST_F(MemoryTest, KnowsTheFirstVersionOfCgroups) {
  write("proc/meminfo", "MemAvailable: 1000 kB\n");
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/y\n");
  write("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/y/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(available().bytes, 1000 * KiB);
  // As a container sees it: the own group is the root of what is mounted.
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "60000\n");
  write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 10000\n");
  EXPECT_EQ(available().bytes, 50'000U);
}

TEST(Memory, IsToldOnThisMachine) { EXPECT_GT(available_memory().value().bytes, 0U); }

TEST(Memory, IsWrittenInUnitsThatPeopleRead) {
  EXPECT_EQ(memory_text(1), "1 MiB");
  EXPECT_EQ(memory_text(20 * MiB), "20 MiB");
  EXPECT_EQ(memory_text(GiB + GiB / 2), "1.5 GiB");
  EXPECT_EQ(memory_text(40 * GiB), "40 GiB");
}

}  // namespace
}  // namespace perdura::harness
