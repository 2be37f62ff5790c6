// Persistent memory of points that is larger than /dev/shm is refused before anything is run: what
// the smaller points have taken time for would be of no use.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/harness/limits/commands.h"
#include "tests/harness/limits/limited_process.h"

namespace perdura::test {
namespace {

// A /dev/shm of 64 MiB as long as it lives.
class SmallSharedMemory {
 public:
  SmallSharedMemory() {
    if (mount("small", "/dev/shm", "tmpfs", 0, "mode=1777,size=64m") != 0) {
      throw std::runtime_error(std::strerror(errno));
    }
  }
  ~SmallSharedMemory() { umount2("/dev/shm", MNT_DETACH); }
  SmallSharedMemory(const SmallSharedMemory&) = delete;
  SmallSharedMemory& operator=(const SmallSharedMemory&) = delete;
};

TEST(Room, IsCheckedBeforeTheFirstPoint) {
  if (!has_own_host()) GTEST_SKIP() << "needs root, for a /dev/shm of its own";
  Home home;
  const std::string experiment = home.at("sizes.toml");
  CommandRow row{"run", ""};
  const auto attempt = [&](const std::string& sizes) {
    std::ofstream(experiment) << "name = \"sizes\"\ndriver = \"memory\"\nplatform = \"shm\"\n"
                                 "[workload]\nsync_size = 4096\noperations = 100\n"
                                 "[matrix]\nsystem = [\"m-sync\"]\nregion_size = "
                              << sizes << "\n";
    return home.attempt(row, "run " + experiment + " --quiet --out NEW/out", {});
  };
  const SmallSharedMemory small;
  const Ended fits = attempt("[1048576]").ended;
  EXPECT_EQ(fits.code, 0) << fits.text();
  const Home::Attempt refused = attempt("[1048576, 268435456]");
  EXPECT_EQ(refused.ended.code, 1) << refused.ended.text();
  EXPECT_EQ(complaints(refused.ended.errors).size(), 1U) << refused.ended.text();
  for (const std::string_view part : {"/dev/shm has ", "region_size=268435456", "--shm-size="}) {
    EXPECT_NE(refused.ended.errors.find(part), std::string::npos) << refused.ended.text();
  }
  EXPECT_FALSE(std::filesystem::exists(refused.fresh / "out")) << "something was run";
}

}  // namespace
}  // namespace perdura::test
