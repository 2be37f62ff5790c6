#include "harness/results/file_system.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

TEST(FileSystem, IsTheOneMountedDeepestAndLastAboveADirectory) {
  const test::TemporaryFolder temporary;
  const auto mounts = temporary.path() / "mountinfo";
  std::ofstream(mounts)
      << "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
         "30 25 259:0 / /mnt/pmem0 rw,noatime shared:7 master:2 - ext4 /dev/pmem0 rw,dax=always\n"
         "31 25 259:1 / /mnt/with\\040blank rw - xfs /dev/pmem1 rw,dax\n"
         "32 25 0:9 / /mnt/twice rw - tmpfs tmpfs rw\n"
         "33 32 259:2 / /mnt/twice ro - xfs /dev/pmem2 ro\n"
         "a line of another format\n";
  const auto of = [&](const std::string& directory) {
    FileSystem found = file_system_of(directory, mounts);
    found.dax = "";
    return to_string(found);
  };
  EXPECT_EQ(of("/mnt/pmem0"), "/mnt/pmem0 on ext4 at /mnt/pmem0 (rw,noatime,rw,dax=always), DAX: ");
  EXPECT_EQ(of("/mnt/pmem0/perdura"),
            "/mnt/pmem0/perdura on ext4 at /mnt/pmem0 (rw,noatime,rw,dax=always), DAX: ");
  EXPECT_EQ(of("/mnt/pmem01"),
            "/mnt/pmem01 on ext4 at / (rw,relatime,rw,errors=remount-ro), DAX: ");
  EXPECT_EQ(of("/mnt/with blank/x"),
            "/mnt/with blank/x on xfs at /mnt/with blank (rw,rw,dax), DAX: ");
  EXPECT_EQ(of("/mnt/twice"), "/mnt/twice on xfs at /mnt/twice (ro,ro), DAX: ");
}

TEST(FileSystem, IsUnknownIfTheKernelDoesNotTell) {
  const FileSystem expected{"/proc", "unknown", "unknown", "unknown", "unknown", "", ""};
  EXPECT_EQ(file_system_of("/proc", "/no/such/file"), expected);
}

TEST(FileSystem, OfSharedMemoryIsOneWithoutDax) {
  const FileSystem found = file_system_of("/dev/shm");
  EXPECT_EQ(found.type, "tmpfs");
  EXPECT_EQ(found.mount_point, "/dev/shm");
  EXPECT_EQ(found.dax, "no");
  EXPECT_EQ(found.promise, "");
  EXPECT_EQ(persistent_memory_of("/dev/shm").promise, "tmpfs; survives processes, not power");
}

}  // namespace
}  // namespace perdura::harness
