// An access control list and the mode say the same of a file's group class, so a change of one
// changes the other. All masks of a list and all permissions that chmod may give are tried, and
// compared with a file system of Linux.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>

#include "services/fs/posix/access_list.h"
#include "tests/mount/two_mounts.h"

namespace perdura::test {
namespace {

namespace files = std::filesystem;

constexpr uid_t kUser = 1001;  // has an entry in the list

std::vector<std::byte> list_with(std::uint16_t mask) {
  using Tag = fs::AccessList::Tag;
  fs::AccessList list;
  list.entries = {{Tag::owner, 7, 0},
                  {Tag::user, 7, kUser},
                  {Tag::owning_group, 5, 0},
                  {Tag::mask, mask, 0},
                  {Tag::other, 0, 0}};
  return list.format();
}

// The rights of the user to the file, as bits of access().
int rights_of_user(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(kUser, kUser, kUser) != 0 || setresuid(kUser, kUser, kUser) != 0) _exit(255);
    int rights = 0;
    for (const int right : {R_OK, W_OK, X_OK}) {
      if (access(path.c_str(), right) == 0) rights |= right;
    }
    _exit(rights);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

struct Seen {
  mode_t mode = 0;
  std::string list;
  int rights = 0;  // of the user
  bool operator==(const Seen&) const = default;
};

Seen seen_at(const std::string& path, bool with_rights) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  std::array<char, 200> list{};
  const ssize_t size = getxattr(path.c_str(), fs::kAccessList.data(), list.data(), list.size());
  EXPECT_GT(size, 0) << "errno " << errno;
  return {.mode = status.st_mode,
          .list = std::string(list.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
          .rights = with_rights ? rights_of_user(path) : 0};
}

enum class Kind { file, open_file, directory };

// Sets a list with this mask at the path, and then the mode.
Seen change(const std::string& path, Kind kind, std::uint16_t mask, mode_t mode) {
  const std::vector<std::byte> list = list_with(mask);
  EXPECT_EQ(setxattr(path.c_str(), fs::kAccessList.data(), list.data(), list.size(), 0), 0);
  if (kind == Kind::open_file) {
    const int file = open(path.c_str(), O_RDWR);
    EXPECT_EQ(fchmod(file, mode), 0);
    close(file);
  } else {
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
  }
  return seen_at(path, kind == Kind::file);
}

class FsAccessListTest : public testing::TestWithParam<std::string> {};

TEST_P(FsAccessListTest, FollowsTheMode) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const Reference reference;
  const AnyMounts mounts(GetParam());
  const std::array<files::path, 2> roots{mounts.a(), reference.path()};
  for (const files::path& root : roots) {
    // The folder above it is of temporary files, which others may not enter.
    for (const files::path& each : {root, root.parent_path()}) chmod(each.c_str(), 0755);
    close(creat((root / "file").c_str(), 0600));
    mkdir((root / "directory").c_str(), 0700);
  }
  for (const Kind kind : {Kind::file, Kind::open_file, Kind::directory}) {
    const std::string name = kind == Kind::directory ? "directory" : "file";
    for (std::uint16_t mask = 0; mask < 8; ++mask) {
      for (mode_t group = 0; group < 8; ++group) {
        const mode_t mode = 0600 | group << 3 | (7 - group);
        const Seen is = change(roots[0] / name, kind, mask, mode);
        const Seen shall = change(roots[1] / name, kind, mask, mode);
        EXPECT_EQ(is.mode, shall.mode);
        EXPECT_EQ(is.list, shall.list);
        EXPECT_EQ(is.rights, shall.rights);
        ASSERT_FALSE(HasFailure()) << name << (kind == Kind::open_file ? ", open" : "") << ", mask "
                                   << mask << std::oct << ", mode " << mode;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, FsAccessListTest, testing::ValuesIn(ways_to_mount()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::test
