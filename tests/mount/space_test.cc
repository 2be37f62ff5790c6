// Random system calls on a mount of a few MiB that is often full, in directories that have more
// entries than an answer to the kernel has room for: when all is deleted, all space is free again.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "tests/mount/mounted.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

class FsSpaceTest : public testing::TestWithParam<std::string> {};

struct Space {
  fsblkcnt_t blocks = 0;
  fsfilcnt_t inodes = 0;
  bool operator==(const Space&) const = default;
};

Space free_in(const files::path& path) {
  struct statvfs is {};
  statvfs(path.c_str(), &is);
  return {is.f_bfree, is.f_ffree};
}

class SmallWorld {
 public:
  SmallWorld(files::path root, std::uint64_t seed) : root_(std::move(root)), random_(seed) {
    for (int i = 0; i < kDirectories; ++i) mkdir(directory(i).c_str(), 0755);
  }
  ~SmallWorld() {
    for (const int file : open_) close(file);
  }
  SmallWorld(const SmallWorld&) = delete;
  SmallWorld& operator=(const SmallWorld&) = delete;

  void step() {
    const std::string path = any_name();
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        create(path);
        break;
      case 3:
        note(rename(path.c_str(), any_name().c_str()));
        break;
      case 4:
      case 5:
        note(unlink(path.c_str()));
        break;
      case 6:
        note(link(path.c_str(), any_name().c_str()));
        break;
      case 7:
        note(symlink(std::string(1 + random_() % 300, 't').c_str(), path.c_str()));
        break;
      case 8:
        note(truncate(path.c_str(), static_cast<off_t>(random_() % 100'000)));
        break;
      case 9: {
        const std::string value(random_() % 3000, 'v');
        note(setxattr(path.c_str(), "user.value", value.data(), value.size(), 0));
        break;
      }
      case 10:
        if (!open_.empty()) {
          close(open_.back());
          open_.pop_back();
        }
        break;
      default:
        list(directory(static_cast<int>(random_() % kDirectories)));
    }
  }

  int times_full() const { return full_; }
  int times_written_in_part() const { return written_in_part_; }
  int times_beyond_one_answer() const { return beyond_one_answer_; }

 private:
  static constexpr int kDirectories = 3;
  static constexpr int kNames = 150;  // in each
  // An entry takes at least this much of an answer to the kernel: fuse_direntplus without the name.
  static constexpr std::size_t kEntryWithAttributes = 152;

  std::string directory(int number) { return (root_ / std::to_string(number)).string(); }
  std::string any_name() {
    return directory(static_cast<int>(random_() % kDirectories)) + "/" +
           std::to_string(random_() % kNames);
  }
  void note(int result) {
    if (result != 0 && errno == ENOSPC) ++full_;
  }
  void create(const std::string& path) {
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW, 0644);
    if (file < 0) return note(-1);
    std::string data(random_() % 60'000, '\0');
    for (char& each : data) each = static_cast<char>(random_());
    const ssize_t written = write(file, data.data(), data.size());
    if (written < static_cast<ssize_t>(data.size())) ++full_;
    if (written > 0 && written < static_cast<ssize_t>(data.size())) {
      ++written_in_part_;
      data.resize(static_cast<std::size_t>(written));
      expect_content(file, data);
    }
    // Some stay open, also when they have no name any more.
    if (open_.size() < 8 && random_() % 8 == 0) {
      open_.push_back(file);
    } else {
      close(file);
    }
  }
  // Of the file system, not of the kernel's cache.
  static void expect_content(int file, const std::string& expected) {
    EXPECT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    std::string found(expected.size(), '\0');
    const ssize_t got = pread(file, found.data(), found.size(), 0);
    EXPECT_EQ(got, static_cast<ssize_t>(expected.size()));
    EXPECT_TRUE(found == expected)
        << "a write of which " << expected.size() << " bytes had room has written others";
  }
  // As `ls -l` does, for which the kernel asks for attributes together with the names. It asks for
  // no more at a time than the program does, but for a page at least.
  void list(const std::string& path) {
    const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY);
    std::vector<char> answer(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    std::size_t count = 0;
    for (;;) {
      const ssize_t length = getdents64(directory, answer.data(), answer.size());
      if (length <= 0) break;
      for (ssize_t at = 0; at < length;) {
        const auto* const entry =
            reinterpret_cast<const dirent64*>(&answer[static_cast<std::size_t>(at)]);
        struct stat is {};
        fstatat(directory, entry->d_name, &is, AT_SYMLINK_NOFOLLOW);
        ++count;
        at += entry->d_reclen;
      }
    }
    close(directory);
    if (count * kEntryWithAttributes > answer.size()) ++beyond_one_answer_;
  }

  files::path root_;
  std::mt19937_64 random_;
  std::vector<int> open_;
  int full_ = 0;
  int written_in_part_ = 0;
  int beyond_one_answer_ = 0;
};

TEST_P(FsSpaceTest, IsAllFreeWhenAllIsDeleted) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is never full";
  const std::uint32_t seed = random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const Mounted mounted(GetParam(), "", 4 * MiB);
  const files::path world = mounted.path() / "world";
  // The root's log has a page from its first name on.
  const fsfilcnt_t inodes = free_in(mounted.path()).inodes;
  files::create_directory(world);
  files::remove(world);
  ASSERT_TRUE(wait_until([&] { return free_in(mounted.path()).inodes == inodes; }));
  const Space empty = free_in(mounted.path());
  for (std::uint32_t round = 0; round < 3; ++round) {
    files::create_directory(world);
    {
      SmallWorld small(world, seed + round);
      for (int i = 0; i < 1500; ++i) small.step();
      // The boundaries were met.
      EXPECT_GT(small.times_full(), 0);
      EXPECT_GT(small.times_written_in_part(), 0);
      EXPECT_GT(small.times_beyond_one_answer(), 0);
    }
    files::remove_all(world);
    // The kernel forgets an inode after the call that ended it.
    EXPECT_TRUE(wait_until([&] { return free_in(mounted.path()) == empty; }))
        << "round " << round << ": " << empty.blocks - free_in(mounted.path()).blocks
        << " blocks and " << empty.inodes - free_in(mounted.path()).inodes << " inodes stay in use";
    if (HasFailure()) break;
  }
}

// What statvfs says is free can be written, but for what says where it lies, and no more.
TEST_P(FsSpaceTest, IsAsMuchAsItSays) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is never full";
  const Mounted mounted(GetParam(), "", 4 * MiB);
  std::vector<int> open_files;
  for (int i = 0; i < 3; ++i) {
    const std::string path = mounted.path() / std::to_string(i);
    open_files.push_back(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    ASSERT_GE(open_files.back(), 0);
  }
  struct statvfs is {};
  ASSERT_EQ(statvfs(mounted.path().c_str(), &is), 0);
  const std::string block(is.f_bsize, 'b');
  std::size_t written = 0;
  for (int failed = 0; failed < 3;) {
    ASSERT_EQ(statvfs(mounted.path().c_str(), &is), 0);
    const std::size_t number = written % open_files.size();
    if (write(open_files[number], block.data(), block.size()) ==
        static_cast<ssize_t>(block.size())) {
      ASSERT_GE(is.f_bavail, 1U) << "there is more room than it says, after " << written;
      ++written;
      continue;
    }
    ASSERT_EQ(errno, ENOSPC);
    // One more for a page of the file's log.
    ASSERT_LE(is.f_bavail, 1U) << "there is less room than it says, after " << written;
    ++failed;
    if (failed < 3) {
      ASSERT_EQ(ftruncate(open_files[number], 0), 0);
    }
  }
  EXPECT_GT(written, is.f_blocks / 2);
  for (const int file : open_files) close(file);
}

INSTANTIATE_TEST_SUITE_P(Systems, FsSpaceTest, testing::ValuesIn(mounted_systems()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::test
