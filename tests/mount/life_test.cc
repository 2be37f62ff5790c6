// The life of a mount: mounted, used, unmounted, killed, mounted again, and what cannot be mounted.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "mount/mount.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/mount/mounted.h"
#include "tests/support/mapped_bytes.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

void write_file(const files::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class FsMountTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
  // What is wrong with the file system that is not mounted; empty if nothing is.
  std::string damage(const files::path& place) {
    std::string found;
    const mount::MountSource at(place);
    const fs::FsSystem& system = systems::find_fs_system(GetParam());
    mount::wait_until_free(at);
    at.run([&](Thread& thread) -> Task<> {
      const auto all = co_await system.inspect(thread, at.name(), false);
      for (const fs::Damage& each : all) found += each.where + ": " + each.what + "; ";
    });
    return found;
  }
};

std::string refusal(const std::string& place, const std::string& directory,
                    const std::string& options = "") {
  try {
    mount::serve(*systems::fs_systems().begin(), mount::MountSource(place),
                 {.directory = directory, .options = options});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "mounted";
}

TEST_P(FsMountTest, FilesStayBehindUnmountAndKill) {
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is forgotten";
  Mounted mounted(GetParam());
  files::create_directory(mounted.path() / "folder");
  write_file(mounted.path() / "folder/file", "text");
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_TRUE(files::is_empty(mounted.path()));
  EXPECT_EQ(damage(mounted.place()), "");
  mounted.mount();
  EXPECT_EQ(read_file(mounted.path() / "folder/file"), "text");
  write_file(mounted.path() / "folder/file", "more text");
  mounted.kill();
  mounted.mount();
  EXPECT_EQ(read_file(mounted.path() / "folder/file"), "more text");
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_EQ(damage(mounted.place()), "");
}

// Nobody's first access to a page of the place takes a page fault.
TEST_P(FsMountTest, MapsAllOfItsPlace) {
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model keeps nothing there";
  Mounted mounted(GetParam());
  const auto size = files::file_size(mounted.place());
  EXPECT_TRUE(wait_until([&] { return mapped_bytes(mounted.process(), mounted.place()) == size; }));
}

// A write gets as much as there is room for, and what is there can be changed, also by stores.
TEST_P(FsMountTest, ThatIsFullCanBeChanged) {
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model has no end";
  Mounted mounted(GetParam());
  constexpr std::size_t kLength = std::size_t{1} << 20;
  const auto open_new = [&](const char* name) {
    return open((mounted.path() / name).c_str(), O_CREAT | O_RDWR, 0644);
  };
  const int changed = open_new("changed");
  const int filling = open_new("filling");
  const std::string before(kLength, 'b');
  ASSERT_EQ(write(changed, before.data(), kLength), static_cast<ssize_t>(kLength));
  ssize_t last = 0;
  for (ssize_t got = 0; (got = write(filling, before.data(), kLength)) > 0;) last = got;
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_LT(last, static_cast<ssize_t>(kLength)) << "a part was written";

  const std::string after(kLength, 'a');
  EXPECT_EQ(pwrite(changed, after.data(), kLength, 0), static_cast<ssize_t>(kLength));
  EXPECT_EQ(read_file(mounted.path() / "changed"), after);
  void* const mapped = mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, changed, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  memset(mapped, 'm', kLength);
  EXPECT_EQ(msync(mapped, kLength, MS_SYNC), 0);
  munmap(mapped, kLength);
  EXPECT_EQ(fsync(changed), 0);
  close(changed);
  close(filling);
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_EQ(damage(mounted.place()), "");
  mounted.mount();
  EXPECT_EQ(read_file(mounted.path() / "changed"), std::string(kLength, 'm'));
}

TEST_P(FsMountTest, ASignalUnmounts) {
  Mounted mounted(GetParam());
  const int open_file = open((mounted.path() / "file").c_str(), O_CREAT | O_RDWR, 0644);
  kill(mounted.process(), SIGTERM);
  int status = 0;
  EXPECT_EQ(waitpid(mounted.process(), &status, 0), mounted.process());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(files::is_empty(mounted.path()));
  close(open_file);
}

// As when nobody reads the output of a program in the foreground any more.
TEST_P(FsMountTest, ABrokenPipeDoesNotEndIt) {
  Mounted mounted(GetParam());
  kill(mounted.process(), SIGPIPE);
  write_file(mounted.path() / "file", "text");
  EXPECT_EQ(read_file(mounted.path() / "file"), "text");
  EXPECT_EQ(mounted.unmount(), 0);
}

TEST_P(FsMountTest, AnAttributeThatIsCreatedAndReplacedIsNeither) {
  Mounted mounted(GetParam());
  const files::path path = mounted.path() / "file";
  write_file(path, "text");
  ASSERT_EQ(setxattr(path.c_str(), "user.a", "1", 1, 0), 0);
  EXPECT_EQ(setxattr(path.c_str(), "user.a", "2", 1, XATTR_CREATE | XATTR_REPLACE), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(setxattr(path.c_str(), "user.b", "2", 1, XATTR_CREATE | XATTR_REPLACE), -1);
  EXPECT_EQ(errno, ENODATA);
}

TEST_P(FsMountTest, IsBusyWhileFilesAreOpen) {
  Mounted mounted(GetParam());
  const int open_file = open((mounted.path() / "file").c_str(), O_CREAT | O_RDWR, 0644);
  EXPECT_EQ(mounted.unmount(), -EBUSY);
  close(open_file);
  EXPECT_EQ(mounted.unmount(), 0);
}

TEST_P(FsMountTest, FilesWithoutNamesStayAsLongAsTheyAreOpen) {
  Mounted mounted(GetParam());
  const files::path path = mounted.path() / "file";
  const int file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(files::is_empty(mounted.path()));  // not even .fuse_hidden...
  EXPECT_EQ(pwrite(file, "text", 4, 0), 4);
  struct stat found {};
  fstat(file, &found);
  EXPECT_EQ(found.st_nlink, 0U);
  EXPECT_EQ(found.st_size, 4);
  const auto free_before = files::space(mounted.path()).free;
  ASSERT_EQ(ftruncate(file, 1 << 20), 0);
  ASSERT_EQ(fallocate(file, 0, 0, 1 << 20), 0);
  EXPECT_LT(files::space(mounted.path()).free, free_before);
  close(file);
}

// The kernel tells a mount behind unlink() that the file is gone.
TEST_P(FsMountTest, SpaceIsFreeWhenTheCallThatFreesItHasReturned) {
  if (!is_persistent(GetParam())) GTEST_SKIP() << "a model is never full";
  Mounted mounted(GetParam());
  const files::path path = mounted.path() / "file";
  const std::string block(4096, 'x');
  for (int i = 0; i < 30; ++i) {
    int file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
    const auto nearly_all = static_cast<off_t>(files::space(mounted.path()).available - (1 << 20));
    ASSERT_EQ(fallocate(file, 0, 0, nearly_all), 0);
    lseek(file, nearly_all, SEEK_SET);
    while (write(file, block.data(), block.size()) > 0) continue;
    EXPECT_EQ(errno, ENOSPC);
    close(file);
    ASSERT_EQ(unlink(path.c_str()), 0);
    file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
    EXPECT_EQ(write(file, block.data(), block.size()), 4096) << "time " << i;
    close(file);
    ASSERT_EQ(unlink(path.c_str()), 0);
  }
}

TEST_P(FsMountTest, AFileCanBeMadeWithoutAName) {
  Mounted mounted(GetParam());
  const int file = open(mounted.path().c_str(), O_TMPFILE | O_RDWR, 0640);
  ASSERT_GE(file, 0);
  EXPECT_EQ(pwrite(file, "text", 4, 0), 4);
  const std::string open_file = "/proc/self/fd/" + std::to_string(file);
  ASSERT_EQ(linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, (mounted.path() / "name").c_str(),
                   AT_SYMLINK_FOLLOW),
            0);
  close(file);
  EXPECT_EQ(read_file(mounted.path() / "name"), "text");
}

// As a member of the directory's group by a supplementary one.
TEST_P(FsMountTest, AFileWithoutANameKeepsSetGroupId) {
  Mounted mounted(GetParam());
  ASSERT_EQ(chown(mounted.path().c_str(), 0, 2000), 0);
  ASSERT_EQ(chmod(mounted.path().c_str(), 02777), 0);
  for (const gid_t group : {2000U, 2001U}) {
    const pid_t child = fork();
    if (child == 0) {
      struct stat found {};
      umask(0);
      const bool is_user = setgroups(1, &group) == 0 && setgid(1000) == 0 && setuid(1000) == 0;
      const int file = open(mounted.path().c_str(), O_TMPFILE | O_RDWR, 02775);
      _exit(is_user && fstat(file, &found) == 0 && (found.st_mode & S_ISGID) != 0 ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), group == 2000 ? 1 : 0) << group;
  }
}

TEST_P(FsMountTest, ReadingSetsTheTimeOfAccessAsRelatime) {
  for (const std::string options : {"", "noatime"}) {
    SCOPED_TRACE(options);
    Mounted mounted(GetParam(), options);
    const files::path path = mounted.path() / "file";
    write_file(path, "text");
    const auto accessed = [&] {
      struct stat found {};
      stat(path.c_str(), &found);
      return found.st_atim.tv_sec;
    };
    const auto set = [&](time_t atime, time_t mtime) {
      const timespec times[2] = {{atime, 0}, {mtime, 0}};
      utimensat(AT_FDCWD, path.c_str(), times, 0);
    };
    set(1000, 2000);
    EXPECT_EQ(accessed(), 1000);
    read_file(path);
    EXPECT_EQ(accessed() > 1000, options.empty());
    // Behind the last change and less than a day ago: it stays.
    const time_t now = time(nullptr);
    set(now + 100, 1000);
    read_file(path);
    EXPECT_EQ(accessed(), now + 100);
  }
}

TEST_P(FsMountTest, TimesReachBeyondTheYear2106AndSizesTo63Bits) {
  Mounted mounted(GetParam());
  const files::path path = mounted.path() / "file";
  const int file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
  const timespec times[2] = {{-1, 999'999'999}, {0x2'0000'0000, 123'456'789}};
  ASSERT_EQ(futimens(file, times), 0);
  constexpr off_t kLargest = std::numeric_limits<off_t>::max();
  ASSERT_EQ(ftruncate(file, kLargest), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  struct stat found {};
  fstat(file, &found);
  EXPECT_EQ(found.st_size, kLargest);
  EXPECT_EQ(found.st_atim.tv_sec, -1);
  EXPECT_EQ(found.st_atim.tv_nsec, 999'999'999);
  EXPECT_EQ(found.st_mtim.tv_sec, 0x2'0000'0000);
  EXPECT_EQ(found.st_mtim.tv_nsec, 123'456'789);
  close(file);
}

TEST_P(FsMountTest, AnInodeIsFoundByItsHandle) {
  Mounted mounted(GetParam());
  write_file(mounted.path() / "file", "text");
  alignas(file_handle) char memory[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* const handle = reinterpret_cast<file_handle*>(memory);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  ASSERT_EQ(name_to_handle_at(AT_FDCWD, (mounted.path() / "file").c_str(), handle, &mount_id, 0),
            0);
  const int directory = open(mounted.path().c_str(), O_RDONLY | O_DIRECTORY);
  const int file = open_by_handle_at(directory, handle, O_RDONLY);
  EXPECT_GE(file, 0);
  close(file);
  close(directory);
}

TEST_P(FsMountTest, EntriesThatStayAreListedOnceWhileOthersComeAndGo) {
  Mounted mounted(GetParam());
  constexpr int kFiles = 500;
  const auto name = [&](const char* kind, int i) {
    return mounted.path() / (kind + std::to_string(i));
  };
  for (int i = 0; i < kFiles; ++i) {
    write_file(name("stays-", i), "");
    write_file(name("goes-", i), "");
  }
  std::map<std::string, int> seen;
  int step = 0;
  for (const auto& entry : files::directory_iterator(mounted.path())) {
    ++seen[entry.path().filename()];
    if (step < kFiles) {
      files::remove(name("goes-", kFiles - 1 - step));
      write_file(name("comes-", step++), "");
    }
  }
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(seen["stays-" + std::to_string(i)], 1);
  }
  for (const auto& [entry, times] : seen) EXPECT_LE(times, 1) << entry;
}

TEST_P(FsMountTest, WhatCannotBeMountedIsSaidInOneLine) {
  if (!is_persistent(GetParam())) GTEST_SKIP() << "of places";
  Mounted mounted(GetParam());
  const std::string place = mounted.place();
  const TemporaryDirectory other("/dev/shm", "other");
  const std::string directory = other.path() / "on";
  files::create_directory(directory);
  EXPECT_EQ(refusal(place, directory), place + ": a process has mounted it; unmount it first");
  EXPECT_EQ(mounted.unmount(), 0);
  EXPECT_EQ(refusal(place, directory + "-not"), directory + "-not: there is no such directory");
  EXPECT_EQ(refusal(place, place), place + ": is not a directory");
  EXPECT_EQ(refusal(place, "/dev"), "/dev: is not empty; mount on another");
  EXPECT_EQ(refusal(place + "-not", directory),
            place + "-not: there is no such file; make it with 'perdura fs mkfs'");
  EXPECT_EQ(refusal(directory, directory),
            directory + ": a file system lies in a file or in a DAX device");
  EXPECT_EQ(refusal(place, directory, "noatime,wrong"),
            "-o noatime,wrong: unknown option(s): `-o wrong'");
  write_file(other.path() / "text", std::string(1 << 20, 'x'));
  EXPECT_NE(refusal(other.path() / "text", directory), "mounted");
  EXPECT_EQ(damage(mounted.place()), "");
}

INSTANTIATE_TEST_SUITE_P(Systems, FsMountTest, testing::ValuesIn(mounted_systems()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
