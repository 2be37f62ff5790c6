// Places that are only read: they need not be writable, and stay as they are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "mount/make.h"
#include "platform/base/error.h"
#include "platform/pmem/mapped/pool_file.h"
#include "systems/registry/registry.h"
#include "tests/mount/mounted.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

TEST(PrivateCopy, IsReadFromAFileThatStaysAsItIs) {
  const TemporaryDirectory folder("/dev/shm", "private");
  const files::path path = folder.path() / "pool";
  std::ofstream(path) << std::string(10'000, 'a');
  using namespace pmem::mapped;
  {
    const auto copy = open_pool_file(path, Access::private_copy);
    const auto again = open_pool_file(path, Access::private_copy);
    const auto in_place = open_pool_file(path);
    copy->mapping->data()[5'000] = std::byte{'b'};
    EXPECT_EQ(again->mapping->data()[5'000], std::byte{'b'});
    EXPECT_EQ(in_place->mapping->data()[5'000], std::byte{'a'});
    EXPECT_EQ(in_place->mapping->data()[9'999], std::byte{'a'});
  }
  EXPECT_EQ(read_file(path), std::string(10'000, 'a'));
  const auto reader = lock_pool_file(path, PoolLock::ownership, Access::private_copy);
  EXPECT_TRUE(lock_pool_file(path, PoolLock::ownership, Access::private_copy).has_value());
  EXPECT_FALSE(lock_pool_file(path, PoolLock::ownership).has_value());
}

class ReadOnlyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
};

// After a kill, so that the mount has to recover.
TEST_F(ReadOnlyTest, AMountLeavesThePlaceAsItIs) {
  Mounted mounted("nova");
  std::ofstream(mounted.path() / "file") << "text";
  mounted.kill();
  const std::string before = read_file(mounted.place());
  mounted.set_options("ro,nosymfollow");
  mounted.mount();
  EXPECT_EQ(read_file(mounted.path() / "file"), "text");
  EXPECT_LT(open((mounted.path() / "other").c_str(), O_CREAT | O_RDWR, 0644), 0);
  EXPECT_EQ(errno, EROFS);
  // Others may read it meanwhile, and nobody may write it.
  const mount::MountSource at(mounted.place());
  mount::wait_until_free(at, mount::Access::private_copy);
  EXPECT_THROW(mount::wait_until_free(at), UsageError);
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_TRUE(read_file(mounted.place()) == before);
}

TEST_F(ReadOnlyTest, APlaceOnAReadOnlyMountIsUsed) {
  Mounted mounted("nova");
  std::ofstream(mounted.path() / "file") << "text";
  EXPECT_EQ(mounted.unmount(), 0);
  const files::path folder = mounted.place().parent_path();
  ASSERT_EQ(::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::mount(nullptr, folder.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr),
            0);
  EXPECT_THROW(mounted.mount(), std::runtime_error);
  mounted.set_options("ro");
  mounted.mount();
  EXPECT_EQ(read_file(mounted.path() / "file"), "text");
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_EQ(umount2(folder.c_str(), MNT_DETACH), 0);
}

TEST_F(ReadOnlyTest, NobodyGoesThroughASymbolicLinkWithNosymfollow) {
  Mounted mounted("nova", "nosymfollow");
  std::ofstream(mounted.path() / "file") << "text";
  files::create_symlink("file", mounted.path() / "link");
  EXPECT_LT(open((mounted.path() / "link").c_str(), O_RDONLY), 0);
  EXPECT_EQ(errno, ELOOP);
  EXPECT_EQ(files::read_symlink(mounted.path() / "link"), "file");
}

}  // namespace
}  // namespace perdura::test
