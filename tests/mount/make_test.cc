// What is there behind a mkfs that succeeds, fails, or is killed in the middle.
#include "mount/make.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "platform/base/error.h"
#include "platform/pmem/mapped/pool_file.h"
#include "systems/registry/registry.h"
#include "tests/mount/mounted.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

const fs::FsSystem& real() { return systems::fs_systems().front(); }

// One that does something else when all of the file system is there, but not under its name.
fs::FsSystem with(Task<> (*then)(Thread&, std::string, fs::FsConfig)) {
  fs::FsSystem system = real();
  system.make = then;
  return system;
}

class MakeTest : public testing::Test {
 protected:
  Bytes make(const fs::FsSystem& system, bool replaces, Bytes size = 4 * MiB,
             const std::string& name = "home.pm") const {
    return mount::make(system, mount::MountSource(folder_.path() / name),
                       {.size = size, .now = {1, 0}, .parameters = {}}, replaces);
  }
  std::string refusal(bool replaces, Bytes size, const std::string& name = "home.pm") const {
    try {
      make(real(), replaces, size, name);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  // The exit code of a process that makes it, or the signal that ended it.
  int process_that_makes(const fs::FsSystem& system, bool replaces) const {
    const pid_t child = fork();
    if (child == 0) {
      make(system, replaces);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : files::directory_iterator(folder_.path())) {
      found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  files::path place() const { return folder_.path() / "home.pm"; }
  static std::string damage(const files::path& path) {
    std::string found;
    const mount::MountSource at(path);
    at.run([&](Thread& thread) -> Task<> {
      for (const auto& each : co_await real().inspect(thread, at.name(), false)) {
        found += each.where + ": " + each.what + "; ";
      }
    });
    return found;
  }

  TemporaryDirectory folder_{"/dev/shm", "make"};
};

const std::vector<std::string> kAlone{"home.pm"};

TEST_F(MakeTest, MakesWholeBlocksAndSaysHowMany) {
  EXPECT_EQ(make(real(), false, 1'000'001), 999'424U);
  EXPECT_EQ(files::file_size(place()), 999'424U);
  EXPECT_EQ(names(), kAlone);
  EXPECT_EQ(damage(place()), "");
  EXPECT_EQ(refusal(false, 4 * MiB), place().string() +
                                         ": exists already; --force replaces it by an empty file "
                                         "system");
}

TEST_F(MakeTest, ThatFailsLeavesTheOldOne) {
  make(real(), false);
  const std::string before = read_file(place());
  EXPECT_EQ(refusal(true, Bytes{1} << 45),
            place().string() +
                ": no room for 35184372088832 bytes; choose a smaller size or another directory");
  const fs::FsSystem fails =
      with([](Thread& thread, std::string name, fs::FsConfig config) -> Task<> {
        co_await real().make(thread, name, config);
        throw PlatformError("no");
      });
  EXPECT_THROW(make(fails, true), PlatformError);
  EXPECT_EQ(names(), kAlone);
  EXPECT_TRUE(read_file(place()) == before);
}

TEST_F(MakeTest, ThatIsKilledLeavesTheOldOneAndTheNextOneCleansUp) {
  const fs::FsSystem dies =
      with([](Thread& thread, std::string name, fs::FsConfig config) -> Task<> {
        co_await real().make(thread, name, config);
        kill(getpid(), SIGKILL);
      });
  EXPECT_EQ(process_that_makes(dies, false), SIGKILL);
  EXPECT_FALSE(files::exists(place()));
  EXPECT_EQ(names().size(), 1U);
  make(real(), false);
  const std::string before = read_file(place());
  EXPECT_EQ(process_that_makes(dies, true), SIGKILL);
  EXPECT_TRUE(read_file(place()) == before);
  // Of a process that was killed when there was not even a whole file; of one that is at work; and
  // what only looks like such a file.
  const std::string dead = names().back();
  const std::string at_work = "home.pm.new-" + std::to_string(getppid()) + "-0";
  for (const std::string& name : {dead + dead.substr(7), at_work, std::string("home.pm.new-1"),
                                  std::string("home.pm.new-0-old"), "other" + dead}) {
    std::ofstream(folder_.path() / name) << "x";
  }
  make(real(), true, 8 * MiB);
  std::vector<std::string> expected{"home.pm", "home.pm.new-0-old", "home.pm.new-1", at_work,
                                    "other" + dead};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(files::file_size(place()), 8 * MiB);
  EXPECT_EQ(damage(place()), "");
}

// When there is not even a whole file, nothing stays.
TEST_F(MakeTest, ThatIsKilledWhileItTakesRoomLeavesNothing) {
  const fs::FsSystem is_killed =
      with([](Thread& thread, std::string name, fs::FsConfig config) -> Task<> {
        const rlimit one_block{4096, 4096};
        setrlimit(RLIMIT_FSIZE, &one_block);
        co_await real().make(thread, name, config);
      });
  EXPECT_EQ(process_that_makes(is_killed, false), SIGXFSZ);
  EXPECT_EQ(names(), std::vector<std::string>());
  make(real(), false);
  const std::string before = read_file(place());
  EXPECT_EQ(process_that_makes(is_killed, true), SIGXFSZ);
  EXPECT_EQ(names(), kAlone);
  EXPECT_TRUE(read_file(place()) == before);
}

// As the user does by ^C.
TEST_F(MakeTest, ThatIsInterruptedLeavesNothing) {
  const fs::FsSystem is_interrupted =
      with([](Thread& thread, std::string name, fs::FsConfig config) -> Task<> {
        co_await real().make(thread, name, config);
        raise(SIGINT);
      });
  EXPECT_EQ(process_that_makes(is_interrupted, false), SIGINT);
  EXPECT_EQ(names(), std::vector<std::string>());
  make(real(), false);
  EXPECT_EQ(process_that_makes(is_interrupted, true), SIGINT);
  EXPECT_EQ(names(), kAlone);
}

TEST_F(MakeTest, ReplacesWhatALinkLeadsTo) {
  make(real(), false);
  files::create_directory(folder_.path() / "links");
  files::create_symlink("../home.pm", folder_.path() / "links/home");
  make(real(), true, 8 * MiB, "links/home");
  EXPECT_TRUE(files::is_symlink(folder_.path() / "links/home"));
  EXPECT_FALSE(files::is_symlink(place()));
  EXPECT_EQ(files::file_size(place()), 8 * MiB);
}

TEST_F(MakeTest, WhatIsUsedStays) {
  make(real(), false);
  const std::string before = read_file(place());
  using pmem::mapped::PoolLock;
  for (const mount::Access access : {mount::Access::in_place, mount::Access::private_copy}) {
    const auto owner = pmem::mapped::lock_pool_file(place(), PoolLock::ownership, access);
    const auto mounted = pmem::mapped::lock_pool_file(place(), PoolLock::mount, access);
    EXPECT_EQ(refusal(true, 4 * MiB),
              place().string() + ": a process has mounted it; unmount it first");
  }
  EXPECT_TRUE(read_file(place()) == before);
  EXPECT_EQ(names(), kAlone);
}

TEST_F(MakeTest, TakesAnyNameOfAFile) {
  for (const std::string name : {"my home, of 1 & 2.pm",
                                 "Gr\xC3\xB6\xC3\x9F"
                                 "e",
                                 "a\\b\"c"}) {
    make(real(), false, 4 * MiB, name);
    EXPECT_EQ(damage(folder_.path() / name), "");
  }
  EXPECT_EQ(refusal(false, 4 * MiB, ""), folder_.path().string() +
                                             "/: a file system lies in a "
                                             "file or in a DAX device");
  EXPECT_THROW(mount::MountSource(""), UsageError);
}

// A tmpfs of its own has no room for two.
TEST_F(MakeTest, SaysThatThereIsRoomWithoutTheOldOne) {
  const files::path small = folder_.path() / "small";
  files::create_directory(small);
  if (::mount("none", small.c_str(), "tmpfs", 0, "size=6m") != 0) GTEST_SKIP() << "no mounts here";
  make(real(), false, 4 * MiB, "small/home.pm");
  EXPECT_EQ(refusal(true, 5 * MiB, "small/home.pm"),
            (small / "home.pm").string() +
                ": no room for 5242880 bytes beside the file system that is there; remove that "
                "first, or choose a smaller size");
  EXPECT_EQ(damage(small / "home.pm"), "");
  umount2(small.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace perdura::test
