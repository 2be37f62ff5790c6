// Two mounts of one file system over a cluster: what a call on one mount has done, calls on the other
// see that begin when it has returned. One of each platform serves all tests but those that kill.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/mount/mounted.h"
#include "tests/mount/two_mounts.h"
#include "tests/support/wait_until.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

// By platform.
class TwoMountsTest : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { mounts_.clear(); }
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }

  static TwoMounts& shared() {
    auto& of_platform = mounts_[GetParam()];
    if (!of_platform) of_platform = std::make_unique<TwoMounts>(alone());
    return *of_platform;
  }
  static files::path a(const std::string& name) { return shared().a() / name; }
  static files::path b(const std::string& name) { return shared().b() / name; }
  // One that a test has for itself.
  static MountedCluster alone() { return {.platform = GetParam()}; }

 private:
  static inline std::map<std::string, std::unique_ptr<TwoMounts>> mounts_;
};

INSTANTIATE_TEST_SUITE_P(Platforms, TwoMountsTest, testing::ValuesIn(kPlatformsOfOneHost),
                         [](const auto& of) { return of.param; });

// An open file.
class OpenFile {
 public:
  OpenFile(const files::path& path, int flags) : descriptor_(open(path.c_str(), flags, 0644)) {}
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  operator int() const { return descriptor_; }

 private:
  int descriptor_;
};

void put(const files::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct stat status_of(const files::path& path) {
  struct stat found {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found;
}

std::string contents(int file, off_t offset, std::size_t length) {
  std::string text(length, '\0');
  const ssize_t got = pread(file, text.data(), length, offset);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

bool write_at(int file, const std::string& text, off_t offset) {
  return pwrite(file, text.data(), text.size(), offset) == static_cast<ssize_t>(text.size());
}

std::set<std::string> names_of(const files::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : files::directory_iterator(directory)) {
    names.insert(entry.path().filename());
  }
  return names;
}

std::uint64_t free_inodes(const files::path& path) {
  struct statvfs found {};
  EXPECT_EQ(statvfs(path.c_str(), &found), 0);
  return found.f_ffree;
}

TEST_P(TwoMountsTest, ContentsAreSeenAtOnceThroughDescriptorsThatWereOpenBefore) {
  put(a("seen"), "one");
  const OpenFile reads(b("seen"), O_RDONLY);
  EXPECT_EQ(contents(reads, 0, 100), "one");
  const OpenFile writes(a("seen"), O_RDWR);
  for (int i = 0; i < 100; ++i) {
    const std::string text = "number " + std::to_string(i) + " of a hundred";
    ASSERT_TRUE(write_at(writes, text, 0));
    ASSERT_EQ(contents(reads, 0, 100).substr(0, text.size()), text);
  }
  ASSERT_EQ(ftruncate(writes, 3), 0);
  EXPECT_EQ(contents(reads, 0, 100), "num");
}

// Times may be set back, so a change cannot be told by them.
TEST_P(TwoMountsTest, ContentsAreSeenThoughSizeAndTimeAreAsBefore) {
  put(a("same"), "one");
  EXPECT_EQ(read_file(b("same")), "one");
  const struct stat before = status_of(b("same"));
  put(a("same"), "two");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, a("same").c_str(), times, 0), 0);
  EXPECT_EQ(read_file(b("same")), "two");
}

TEST_P(TwoMountsTest, AttributesAreSeenAtOnce) {
  put(a("attributes"), "text");
  const OpenFile open_there(b("attributes"), O_RDONLY);
  ASSERT_EQ(chmod(a("attributes").c_str(), 0751), 0);
  ASSERT_EQ(chown(a("attributes").c_str(), 7, 8), 0);
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = 3, .tv_nsec = 4}};
  ASSERT_EQ(utimensat(AT_FDCWD, a("attributes").c_str(), times, 0), 0);
  ASSERT_EQ(truncate(a("attributes").c_str(), 12345), 0);
  ASSERT_EQ(link(a("attributes").c_str(), a("second").c_str()), 0);
  ASSERT_EQ(setxattr(a("attributes").c_str(), "user.color", "red", 3, 0), 0);
  const struct stat here = status_of(a("attributes"));
  struct stat there {};
  ASSERT_EQ(fstat(open_there, &there), 0);
  EXPECT_EQ(there.st_mode & 07777, 0751U);
  EXPECT_EQ(there.st_uid, 7U);
  EXPECT_EQ(there.st_gid, 8U);
  EXPECT_EQ(there.st_size, 12345);
  EXPECT_EQ(there.st_nlink, 2U);
  EXPECT_EQ(there.st_mtim.tv_nsec, here.st_mtim.tv_nsec);
  EXPECT_EQ(there.st_ctim.tv_nsec, here.st_ctim.tv_nsec);
  std::string value(3, '\0');
  EXPECT_EQ(getxattr(b("attributes").c_str(), "user.color", value.data(), 3), 3);
  EXPECT_EQ(value, "red");
}

TEST_P(TwoMountsTest, NamesAreSeenAtOnceAlsoThoseThatWereAbsentBefore) {
  ASSERT_TRUE(files::create_directory(a("names")));
  EXPECT_FALSE(files::exists(b("names/new")));
  put(a("names/new"), "new");
  EXPECT_TRUE(files::exists(b("names/new")));
  EXPECT_EQ(names_of(b("names")), std::set<std::string>{"new"});
  files::rename(b("names/new"), b("names/renamed"));
  EXPECT_FALSE(files::exists(a("names/new")));
  EXPECT_EQ(read_file(a("names/renamed")), "new");
  put(b("names/other"), "other");
  files::rename(b("names/other"), b("names/renamed"));
  EXPECT_EQ(read_file(a("names/renamed")), "other");
  files::create_symlink("here", a("names/link"));
  EXPECT_EQ(files::read_symlink(b("names/link")), "here");
  files::remove(b("names/link"));
  files::create_symlink("there", b("names/link"));
  EXPECT_EQ(files::read_symlink(a("names/link")), "there");
  files::remove(a("names/link"));
  files::remove(a("names/renamed"));
  EXPECT_TRUE(names_of(b("names")).empty());
  EXPECT_TRUE(files::remove(b("names")));
  EXPECT_FALSE(files::exists(a("names")));
}

// A directory that the other mount moves or removes while it is a working directory here.
TEST_P(TwoMountsTest, DirectoriesThatAreMovedOrRemovedStayUsable) {
  files::create_directories(a("from/inner"));
  const OpenFile inner(b("from/inner"), O_RDONLY | O_DIRECTORY);
  files::create_directory(a("to"));
  files::rename(a("from/inner"), a("to/inner"));
  {
    const int made = openat(inner, "file", O_CREAT | O_WRONLY | O_EXCL, 0644);
    ASSERT_GE(made, 0);
    close(made);
  }
  EXPECT_TRUE(files::exists(a("to/inner/file")));
  EXPECT_TRUE(files::exists(b("to/inner/file")));
  files::remove_all(a("to"));
  EXPECT_EQ(openat(inner, "file", O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(errno, ENOENT);
  files::remove_all(a("from"));
}

TEST_P(TwoMountsTest, AppendsOfBothNeverOverlap) {
  constexpr int kAppends = 300;
  put(a("log"), "");
  const auto line_of = [](char who, int number) {
    // Lengths that make lines span pages.
    return std::string(1, who) + std::to_string(number) + std::string(number % 90, who) + "\n";
  };
  const auto append_all = [&](const files::path& path, char who) {
    const OpenFile file(path, O_WRONLY | O_APPEND);
    for (int i = 0; i < kAppends; ++i) {
      const std::string line = line_of(who, i);
      ASSERT_EQ(write(file, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
  };
  std::thread other([&] { append_all(b("log"), 'b'); });
  append_all(a("log"), 'a');
  other.join();
  std::map<char, int> next;
  std::ifstream log(b("log"));
  for (std::string line; std::getline(log, line);) {
    ASSERT_FALSE(line.empty());
    const char who = line[0];
    ASSERT_EQ(line + "\n", line_of(who, next[who]++)) << "what one has appended is not in order";
  }
  EXPECT_EQ(next['a'], kAppends);
  EXPECT_EQ(next['b'], kAppends);
}

// Each name is created by exactly one of those who want to be the only one, and opened by all others.
TEST_P(TwoMountsTest, OneOfTwoCreatesAndTheOtherOpens) {
  constexpr int kNames = 200;
  std::atomic<int> created{0};
  std::atomic<int> opened{0};
  const auto create_all = [&](const files::path& directory) {
    for (int i = 0; i < kNames; ++i) {
      const files::path path = directory / ("race" + std::to_string(i));
      const int alone = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
      if (alone >= 0) ++created;
      if (alone < 0 && errno != EEXIST) ADD_FAILURE() << "errno " << errno;
      const files::path shared = directory / ("shared" + std::to_string(i));
      const int any = open(shared.c_str(), O_CREAT | O_WRONLY, 0644);
      if (any >= 0) ++opened;
      if (any < 0) ADD_FAILURE() << "errno " << errno;
      close(alone);
      close(any);
    }
  };
  std::thread other([&] { create_all(shared().b()); });
  create_all(shared().a());
  other.join();
  EXPECT_EQ(created, kNames);
  EXPECT_EQ(opened, 2 * kNames);
}

TEST_P(TwoMountsTest, UnlinkedOpenFilesLiveUntilTheLastMountClosesThem) {
  const std::uint64_t before = free_inodes(shared().a());
  {
    const OpenFile here(a("unlinked"), O_CREAT | O_RDWR);
    ASSERT_TRUE(write_at(here, "still there", 0));
    {
      const OpenFile there(b("unlinked"), O_RDWR);
      files::remove(b("unlinked"));
      EXPECT_FALSE(files::exists(a("unlinked")));
      ASSERT_TRUE(write_at(there, "STILL", 0));
    }
    EXPECT_EQ(contents(here, 0, 100), "STILL there");
    EXPECT_EQ(free_inodes(shared().b()), before - 1);
  }
  // The kernel closes files and forgets inodes after the calls have returned.
  EXPECT_TRUE(wait_until([&] { return free_inodes(shared().b()) == before; }));
}

// A mapping is written back by msync(), and mapped anew it has what the other has written.
TEST_P(TwoMountsTest, SharedMappingsAreSeenAfterMsync) {
  put(a("mapped"), std::string(8192, '-'));
  const OpenFile here(a("mapped"), O_RDWR);
  void* const memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, here, 0);
  if (memory == MAP_FAILED && errno == ENODEV) GTEST_SKIP() << "needs Linux 6.6";
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(static_cast<char*>(memory) + 4094, "over", 4);
  ASSERT_EQ(msync(memory, 8192, MS_SYNC), 0);
  EXPECT_EQ(read_file(b("mapped")).substr(4094, 4), "over");
  munmap(memory, 8192);
  const OpenFile there(b("mapped"), O_RDWR);
  ASSERT_TRUE(write_at(there, "OVER", 4094));
  void* const again = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, here, 0);
  ASSERT_NE(again, MAP_FAILED);
  EXPECT_EQ(std::string(static_cast<const char*>(again) + 4094, 4), "OVER");
  munmap(again, 8192);
}

struct flock range_lock(short type, off_t first, off_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = length;
  return lock;
}

// Another process: locks of one process do not exclude each other. It locks, says so, and is killed.
class LockingProcess {
 public:
  LockingProcess(const files::path& path, struct flock lock, bool whole_file = false) {
    std::array<int, 2> said{};
    if (pipe2(said.data(), O_CLOEXEC) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
      const int outcome = whole_file ? flock(file, LOCK_EX) : fcntl(file, F_SETLKW, &lock);
      const char result = outcome == 0 ? '+' : '-';
      if (write(said[1], &result, 1) == 1) ::pause();
      _exit(0);
    }
    close(said[1]);
    said_ = said[0];
  }
  ~LockingProcess() {
    if (process_ != 0) end();
  }
  LockingProcess(const LockingProcess&) = delete;
  LockingProcess& operator=(const LockingProcess&) = delete;

  // Returns when it has the lock.
  bool locks() const {
    char result = 0;
    return read(said_, &result, 1) == 1 && result == '+';
  }
  void end() {
    close(said_);
    ::kill(process_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(process_, 0), &status, 0);
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
  int said_ = -1;
};

TEST_P(TwoMountsTest, LocksOfRangesHoldOverBothMounts) {
  put(a("locked"), "text");
  const OpenFile there(b("locked"), O_RDWR);
  LockingProcess holder(a("locked"), range_lock(F_WRLCK, 10, 10));
  ASSERT_TRUE(holder.locks());
  struct flock lock = range_lock(F_RDLCK, 19, 5);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(fcntl(there, F_GETLK, &lock), 0);
  EXPECT_EQ(lock.l_type, F_WRLCK);
  EXPECT_EQ(lock.l_start, 10);
  EXPECT_EQ(lock.l_len, 10);
  EXPECT_EQ(lock.l_pid, holder.process());
  lock = range_lock(F_WRLCK, 20, 0);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), 0);
  holder.end();
  lock = range_lock(F_WRLCK, 0, 0);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), 0) << "a process that has ended has a lock";
  // Gives up the middle; others can have that, and nothing else.
  lock = range_lock(F_UNLCK, 100, 50);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), 0);
  LockingProcess middle(a("locked"), range_lock(F_WRLCK, 100, 50));
  EXPECT_TRUE(middle.locks());
  lock = range_lock(F_RDLCK, 149, 1);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), -1);
  lock = range_lock(F_RDLCK, 0, 100);
  EXPECT_EQ(fcntl(there, F_SETLK, &lock), 0);
}

TEST_P(TwoMountsTest, AProgramWaitsForALockOfTheOtherMount) {
  put(a("awaited"), "text");
  LockingProcess first(a("awaited"), range_lock(F_WRLCK, 0, 0));
  ASSERT_TRUE(first.locks());
  // More than the mount has threads.
  std::vector<std::unique_ptr<LockingProcess>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::make_unique<LockingProcess>(b("awaited"), range_lock(F_RDLCK, 0, 0)));
  }
  // The mount of those that wait goes on, and one that is killed ends.
  put(b("meanwhile"), "text");
  waiting.front()->end();
  waiting.erase(waiting.begin());
  first.end();
  for (const auto& each : waiting) EXPECT_TRUE(each->locks());
}

TEST_P(TwoMountsTest, LocksOfFilesHoldOverBothMounts) {
  put(a("flocked"), "text");
  const OpenFile there(b("flocked"), O_RDWR);
  {
    const OpenFile here(a("flocked"), O_RDWR);
    ASSERT_EQ(flock(here, LOCK_SH), 0);
    EXPECT_EQ(flock(there, LOCK_SH | LOCK_NB), 0);
    EXPECT_EQ(flock(there, LOCK_EX | LOCK_NB), -1);
    EXPECT_EQ(errno, EWOULDBLOCK);
    // The two kinds ignore each other.
    struct flock lock = range_lock(F_WRLCK, 0, 0);
    EXPECT_EQ(fcntl(there, F_SETLK, &lock), 0);
  }
  // It has been closed, which the kernel says after the call.
  EXPECT_EQ(flock(there, LOCK_EX), 0);
  LockingProcess waits(a("flocked"), {}, true);
  EXPECT_EQ(flock(there, LOCK_UN), 0);
  EXPECT_TRUE(waits.locks());
}

TEST_P(TwoMountsTest, ALockEndsWithTheMountThatHasIt) {
  TwoMounts mounts(alone());
  put(mounts.b() / "file", "text");
  LockingProcess holder(mounts.a() / "file", range_lock(F_WRLCK, 0, 0));
  ASSERT_TRUE(holder.locks());
  LockingProcess waits(mounts.b() / "file", range_lock(F_WRLCK, 0, 0));
  mounts.kill(mounts.a());
  EXPECT_TRUE(waits.locks());
}

TEST_P(TwoMountsTest, MountsAndServersEndInAnOrderlyWay) {
  TwoMounts mounts(alone());
  put(mounts.a() / "kept", "kept");
  EXPECT_EQ(mounts.unmount(mounts.a()), 0);
  EXPECT_EQ(mounts.unmount(mounts.b()), 0);
  EXPECT_EQ(mounts.end_server("mds"), 0);
  EXPECT_EQ(mounts.end_server("left"), 0);
  mounts.serve({"left", "mds"});
  mounts.mount(mounts.b());
  EXPECT_EQ(read_file(mounts.b() / "kept"), "kept");
}

// No call was under way.
TEST_P(TwoMountsTest, AServerThatWasStartedAgainBetweenCallsIsNotNoticed) {
  TwoMounts mounts(alone());
  put(mounts.a() / "kept", "kept");
  EXPECT_EQ(read_file(mounts.b() / "kept"), "kept");
  for (const std::string server : {"mds", "left"}) {
    mounts.end_server(server, SIGKILL);
    mounts.serve({server});
    EXPECT_EQ(read_file(mounts.a() / "kept"), "kept") << server;
    EXPECT_EQ(read_file(mounts.b() / "kept"), "kept") << server;
  }
}

// A second server of the same pages or metadata would overwrite what the first one has acknowledged.
TEST_P(TwoMountsTest, APartIsServedOnce) {
  TwoMounts mounts(alone());
  put(mounts.a() / "file", "text");
  for (const std::string server : {"mds", "left"}) {
    EXPECT_THROW(mounts.serve_elsewhere(server), std::runtime_error) << server;
  }
  EXPECT_EQ(read_file(mounts.b() / "file"), "text");
}

TEST_P(TwoMountsTest, AKilledMountLeavesNothingBehind) {
  TwoMounts mounts(alone());
  const std::uint64_t before = free_inodes(mounts.b());
  put(mounts.a() / "file", "complete");
  const OpenFile here(mounts.a() / "file", O_RDWR);
  files::remove(mounts.b() / "file");
  EXPECT_EQ(free_inodes(mounts.b()), before - 1);
  mounts.kill(mounts.a());
  EXPECT_TRUE(wait_until([&] { return free_inodes(mounts.b()) == before; }));
  put(mounts.b() / "other", "other");
  mounts.mount(mounts.a());
  EXPECT_EQ(read_file(mounts.a() / "other"), "other");
}

// Rather than mounting it and failing some calls.
TEST_P(TwoMountsTest, AMountForWhichTheServersHaveNoSessionsIsRefused) {
  // Two mounts of three threads, and one for each that waits for locks.
  MountedCluster cluster = alone();
  cluster.parameters = "sessions = 9";
  TwoMounts mounts(cluster);
  const files::path third = files::path(mounts.configuration()).parent_path() / "third";
  files::create_directory(third);
  EXPECT_THROW(mounts.mount(third), std::runtime_error);
  ASSERT_EQ(mounts.unmount(mounts.a()), 0);
  mounts.mount(third);
  put(third / "file", "text");
  EXPECT_EQ(read_file(mounts.b() / "file"), "text");
}

TEST_P(TwoMountsTest, AMirrorTakesOverAndHasWhatCallsHaveDone) {
  MountedCluster cluster = alone();
  cluster.parameters = "takeover_after_us = 100_000";
  cluster.has_mirror = true;
  TwoMounts mounts(cluster);
  put(mounts.a() / "file", "complete");
  mounts.end_server("mds", SIGKILL);
  mounts.unmount(mounts.a());
  mounts.unmount(mounts.b());
  mounts.mount(mounts.b());
  EXPECT_EQ(read_file(mounts.b() / "file"), "complete");
  put(mounts.b() / "other", "other");
  EXPECT_EQ(read_file(mounts.b() / "other"), "other");
}

// Two users of a host may have chosen the same name.
TEST_P(TwoMountsTest, AFileSystemOfTheSameNameIsAnotherOne) {
  TwoMounts mounts(alone());
  TwoMounts others(alone());
  put(mounts.a() / "file", "text");
  EXPECT_FALSE(files::exists(others.a() / "file"));
  EXPECT_FALSE(files::exists(others.b() / "file"));
}

// The mount of a store's host uses the store's memory, and others see what it has written there.
TEST_P(TwoMountsTest, AMountMayUseTheMemoryOfTheStoreOfItsHost) {
  TwoMounts mounts(alone());
  ASSERT_EQ(mounts.unmount(mounts.a()), 0);
  mounts.mount(mounts.a(), {"--store=left"});
  const std::string text(100'000, 'x');
  put(mounts.a() / "file", text);
  EXPECT_EQ(read_file(mounts.b() / "file"), text);
  put(mounts.b() / "file", "short");
  EXPECT_EQ(read_file(mounts.a() / "file"), "short");
}

}  // namespace
}  // namespace perdura::test
