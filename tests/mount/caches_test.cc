// What the kernel decides from its own caches, tried by its effect straight after each change: a
// call of stat would refresh what it remembers, and hide that it was told wrong.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "tests/mount/two_mounts.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

class FsCachesTest : public testing::TestWithParam<std::string> {};

constexpr std::array<uid_t, 2> kUsers{1001, 1002};

// The error of a call that another user makes, 0 if it succeeds.
int as_user(uid_t user, const std::function<int()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 ||
        setresuid(user, user, user) != 0) {
      _exit(255);
    }
    _exit(call() < 0 ? errno : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

// A program whose exit code is 0.
int execute(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    execl(path.c_str(), path.c_str(), nullptr);
    _exit(errno);
  }
  int status = 0;
  waitpid(child, &status, 0);
  errno = WEXITSTATUS(status);
  return errno == 0 ? 0 : -1;
}

struct File {
  std::string name;
  mode_t mode = 0644;
  uid_t owner = 0;
  std::size_t size = 0;
  bool exists = true;
};

class Changes {
 public:
  // `seen`: the root by which it is checked, of another mount if there is one.
  Changes(files::path root, files::path seen, std::uint64_t seed)
      : root_(std::move(root)), seen_(std::move(seen)), random_(seed) {
    files::copy_file("/bin/true", root_ / "program");
    program_ = files::file_size(root_ / "program");
    for (int i = 0; i < 3; ++i) {
      File file{.name = "file" + std::to_string(i), .size = program_};
      files::copy_file("/bin/true", path(file));
      chmod(path(file).c_str(), file.mode);
      files_.push_back(file);
    }
    chmod(root_.c_str(), 0755);
  }

  void change() {
    File& file = files_[random_() % files_.size()];
    if (!file.exists) {
      make(file);
      return;
    }
    switch (random_() % 6) {
      case 0:
      case 1:
        file.mode = random_() % 01000;
        expect(chmod(path(file).c_str(), file.mode), "chmod");
        break;
      case 2:
        file.owner = random_() % 3 == 0 ? 0 : kUsers[random_() % kUsers.size()];
        expect(chown(path(file).c_str(), file.owner, file.owner), "chown");
        break;
      case 3:
        file.size = random_() % 2 == 0 ? program_ : random_() % 20'000;
        expect(truncate(path(file).c_str(), static_cast<off_t>(file.size)), "truncate");
        cut_.insert(&file);
        break;
      case 4: {
        File moved = file;
        moved.name = "moved" + std::to_string(++moves_);
        expect(rename(path(file).c_str(), path(moved).c_str()), "rename");
        EXPECT_EQ(as_user(kUsers[0], [&] { return open(path(file).c_str(), O_PATH); }), ENOENT);
        file.name = moved.name;
        break;
      }
      default:
        expect(unlink(path(file).c_str()), "unlink");
        file.exists = false;
    }
  }

  void check() {
    for (const File& file : files_) {
      SCOPED_TRACE(testing::Message() << file.name << std::oct << ", mode " << file.mode << std::dec
                                      << ", owner " << file.owner);
      const uid_t user = kUsers[random_() % kUsers.size()];
      const std::string at = (seen_ / file.name).string();
      const auto opened = [&](int flags) {
        return as_user(user, [&] { return open(at.c_str(), flags); });
      };
      EXPECT_EQ(opened(O_RDONLY), expected(file, user, 4)) << "read by " << user;
      EXPECT_EQ(opened(O_WRONLY), expected(file, user, 2)) << "written by " << user;
      EXPECT_EQ(as_user(user, [&] { return access(at.c_str(), X_OK); }), expected(file, user, 1))
          << "access of " << user;
      if (file.exists && !cut_.contains(&file)) {
        EXPECT_EQ(as_user(user, [&] { return execute(at); }), expected(file, user, 1))
            << "executed by " << user;
      }
      if (!file.exists) continue;
      // To its end, as root.
      const int descriptor = open(at.c_str(), O_RDONLY);
      EXPECT_EQ(lseek(descriptor, 0, SEEK_END), static_cast<off_t>(file.size));
      lseek(descriptor, 0, SEEK_SET);
      std::vector<char> bytes(file.size + 4096);
      EXPECT_EQ(::read(descriptor, bytes.data(), bytes.size()), static_cast<ssize_t>(file.size));
      close(descriptor);
    }
  }

 private:
  std::string path(const File& file) const { return (root_ / file.name).string(); }
  static void expect(int result, const char* call) {
    EXPECT_EQ(result, 0) << call << ": " << errno;
  }
  static int expected(const File& file, uid_t user, mode_t wanted) {
    if (!file.exists) return ENOENT;
    const mode_t rights = file.owner == user ? file.mode >> 6 : file.mode;
    return (rights & wanted) != 0 ? 0 : EACCES;
  }
  void make(File& file) {
    file.mode = 0644;
    file.owner = 0;
    file.size = program_;
    file.exists = true;
    files::copy_file("/bin/true", path(file));
    chmod(path(file).c_str(), file.mode);
    cut_.erase(&file);
  }

  files::path root_;
  files::path seen_;
  std::mt19937_64 random_;
  std::vector<File> files_;
  std::set<const File*> cut_;  // that are no program any more
  std::size_t program_ = 0;
  int moves_ = 0;
};

TEST_P(FsCachesTest, SayWhatHasJustBeenChanged) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const std::uint32_t seed = random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const AnyMounts mounts(GetParam());
  chmod(mounts.a().parent_path().c_str(), 0755);
  Changes changes(mounts.a(), mounts.b(), seed);
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "change " << i);
    changes.change();
    changes.check();
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, FsCachesTest, testing::ValuesIn(ways_to_mount()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::test
