// A process on a model does what the kernel does: the same system calls, at random, by several
// users, have the same results and errors, and leave the same trees.
//
//   PERDURA_FS_OPERATIONS=200000 PERDURA_FS_DIRECTORY=/mnt build/.../perdura_fs_posix_test
//
// runs so many operations in a directory of another file system than tmpfs.
//
// Where the kernel's file systems differ from the model, each for its reason, the operations are
// not drawn or not compared:
//   - fallocate(): tmpfs takes space that was never written for a hole, the model, which has no
//     such state, for data; so either fallocate() is drawn or SEEK_DATA and SEEK_HOLE. tmpfs has no
//     FALLOC_FL_ZERO_RANGE.
//   - ".." of a removed current directory: the kernel remembers where it was, inodes alone do not.
//   - truncate() by a path to the size that a file has: the kernel leaves times alone there, POSIX
//     wants them updated.
//   - Removing an access list: on tmpfs that clears set-group-ID of a group that the process is not
//     in, as setting one does; on ext4 and here it does not. Whether it sets the time of change if
//     there is no list differs between the two.
//   - open() with O_CREAT of a symbolic link or a socket that it may not follow or open, in a
//   sticky
//     directory that everybody may write: the kernel says EACCES for what it would refuse anyway.
//   - Sizes of directories, and times of access (the kernel's clock for them is coarse).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/services/fs/posix/sides.h"
#include "tests/support/seed.h"
#include "tests/support/temporary_directory.h"

namespace perdura::fs::test {
namespace {

using Kind = Operation::Kind;

std::int64_t number_from(const char* name, std::int64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoll(given, nullptr, 10);
}

int kernel_setting(const std::string& name) {
  int value = 0;
  std::ifstream("/proc/sys/fs/" + name) >> value;
  return value;
}

// Times that an operation changed, or that a user has given, of each file.
class Times {
 public:
  struct Change {
    bool modified = false;
    bool changed = false;
    bool size = false;
  };
  // Since the last call.
  std::map<std::string, Change> changes(const Picture& picture) {
    std::map<std::string, Change> found;
    std::map<std::uint64_t, Seen> now;
    for (const auto& [path, seen] : picture) {
      const auto before = last_.find(seen.inode);
      const bool is_new = before == last_.end();
      found[path] = {.modified = is_new || before->second.modified != seen.modified,
                     .changed = is_new || before->second.changed != seen.changed,
                     .size = is_new || before->second.size != seen.size};
      now[seen.inode] = seen;
    }
    last_ = std::move(now);
    return found;
  }

 private:
  std::map<std::uint64_t, Seen> last_;
};

class Comparison {
 public:
  Comparison(const std::string& directory, std::uint32_t seed, const Drawn& drawn)
      : random_(seed),
        drawn_(drawn),
        files_(Model({.now = {2'000'000'000, 0}, .capacity = 64 * GiB})),
        session_(files_),
        process_(session_, {.protected_hard_links = kernel_setting("protected_hardlinks") != 0}),
        kernel_(directory) {}

  // Returns what differs.
  std::string run(std::int64_t operations) {
    std::string difference = compare_pictures(true);
    for (std::int64_t i = 0; i < operations && difference.empty(); ++i) {
      if (process_.is_lost()) {
        const Operation home{.kind = Kind::chdir, .path = "/"};
        process_.apply(home);
        kernel_.apply(home);
      }
      known_.slots = process_.open_slots();
      const Operation operation = draw(random_, drawn_, known_);
      last_ = text_of(operation);
      difference = compare(operation);
      if (difference.empty() && i % 100 == 99) difference = compare_data();
      if (!difference.empty()) {
        difference = "operation " + std::to_string(i) + ", " + last_ + ": " + difference;
      }
    }
    if (difference.empty()) difference = files_.model().audit();
    if (difference.empty()) difference = leave();
    return difference;
  }

  const std::map<std::pair<Kind, int>, int>& outcomes() const { return outcomes_; }

 private:
  std::string compare(const Operation& operation) {
    const Outcome by_process = process_.apply(operation);
    ++outcomes_[{operation.kind, by_process.error}];
    // The kernel would wait for the other end of a pipe.
    if (by_process.error == EOPNOTSUPP && operation.kind == Kind::open) return "";
    timespec clock{};
    clock_gettime(CLOCK_REALTIME_COARSE, &clock);
    begun_ = {clock.tv_sec, static_cast<std::uint32_t>(clock.tv_nsec)};
    const Outcome by_kernel = kernel_.apply(operation);
    if (by_process != by_kernel && !is_sticky_link(operation, by_process, by_kernel)) {
      return text_of(by_process) + " instead of " + text_of(by_kernel);
    }
    return compare_pictures(operation.kind != Kind::truncate && !may_remove_list(operation));
  }

  static bool may_remove_list(const Operation& operation) {
    constexpr std::size_t kLongestMode = 4 + 3 * 8;
    return operation.other.starts_with("system.") &&
           (operation.kind == Kind::removexattr ||
            (operation.kind == Kind::setxattr && operation.data.size() <= kLongestMode));
  }

  static bool is_sticky_link(const Operation& operation, const Outcome& by_process,
                             const Outcome& by_kernel) {
    return operation.kind == Kind::open && (operation.flags & O_CREAT) != 0 &&
           (by_process.error == ELOOP || by_process.error == ENXIO) && by_kernel.error == EACCES;
  }

  // `with_same_size`: whether the times of files that keep their sizes are compared.
  std::string compare_pictures(bool with_same_size) {
    const Picture process = process_.picture();
    const Picture kernel = kernel_.picture();
    for (const auto& [path, seen] : kernel) {
      if (!process.contains(path)) return path + " is missing";
    }
    std::map<std::uint64_t, std::uint64_t> inodes;
    known_.paths.clear();
    for (const auto& [path, seen] : process) {
      known_.paths.push_back(path);
      const auto found = kernel.find(path);
      if (found == kernel.end()) return path + " should not exist";
      const Seen& other = found->second;
      const auto number = [&](const char* what, std::uint64_t is, std::uint64_t shall) {
        return is == shall ? std::string()
                           : path + ": " + what + " " + std::to_string(is) + " instead of " +
                                 std::to_string(shall);
      };
      for (const std::string& text :
           {number("mode", seen.mode, other.mode), number("uid", seen.uid, other.uid),
            number("gid", seen.gid, other.gid), number("links", seen.links, other.links),
            number("device", seen.device, other.device), number("size", seen.size, other.size)}) {
        if (!text.empty()) return text;
      }
      const auto [same, is_new] = inodes.emplace(seen.inode, other.inode);
      if (!is_new && same->second != other.inode) return path + " is another file's name";
      if (is_given(seen.modified) && seen.modified != other.modified) {
        return path + ": another time of modification";
      }
    }
    const auto changes = process_times_.changes(process);
    const auto expected = kernel_times_.changes(kernel);
    for (const auto& [path, change] : changes) {
      if (!with_same_size && !change.size) continue;
      const Times::Change& other = expected.at(path);
      const Seen& seen = kernel.at(path);
      // The kernel's clock stands still between its ticks, so a time may be set to what it was.
      if (change.modified ? seen.modified < begun_ && !other.modified : other.modified) {
        return path + (change.modified ? ": modified" : ": not modified");
      }
      if (change.changed ? seen.changed < begun_ && !other.changed : other.changed) {
        return path + (change.changed ? ": changed" : ": not changed");
      }
    }
    return "";
  }

  // utimens() draws no time of these years.
  static bool is_given(Timestamp time) {
    return time.seconds < 1'700'000'000 || time.seconds > 2'100'000'000;
  }

  std::string compare_data() {
    const Picture picture = process_.picture();
    for (const auto& [path, seen] : picture) {
      if (!S_ISREG(seen.mode) || path.size() > 4000) continue;
      const auto compare_extents = [&](Side& from, Side& with) {
        for (const Extent& extent : from.data_of(path)) {
          const std::string other = with.bytes_of(path, extent.offset, extent.bytes.size());
          if (std::as_bytes(std::span(other)).size() != extent.bytes.size() ||
              !std::equal(extent.bytes.begin(), extent.bytes.end(),
                          std::as_bytes(std::span(other)).begin())) {
            return path + ": other data at " + std::to_string(extent.offset);
          }
        }
        return std::string();
      };
      std::string text = compare_extents(process_, kernel_);
      if (text.empty()) text = compare_extents(kernel_, process_);
      if (!text.empty()) return text;
    }
    return "";
  }

  // Nothing stays behind: all that is unlinked and open is freed when it is closed.
  std::string leave() {
    process_.exit();
    Model left = files_.model();
    const Statistics before = left.statistics().value();
    left.end_holds();
    return left.statistics()->free_inodes == before.free_inodes ? "" : "an inode is still held";
  }

  std::mt19937 random_;
  Drawn drawn_;
  ModelFileSystem files_;
  ModelSession session_;
  ProcessSide process_;
  KernelSide kernel_;
  Times process_times_;
  Times kernel_times_;
  Known known_;
  Timestamp begun_{};  // the last operation, by the kernel's clock
  std::string last_;
  std::map<std::pair<Kind, int>, int> outcomes_;
};

// Sequences begin anew after so many operations, or trees grow without bounds.
constexpr std::int64_t kSequence = 2000;

TEST(FsKernelTest, HasTheSameResultsErrorsAndTrees) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act for several users";
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const char* const given = std::getenv("PERDURA_FS_DIRECTORY");
  const perdura::test::TemporaryDirectory directory(given == nullptr ? "/dev/shm" : given,
                                                    "kernel");
  struct statfs status {};
  ASSERT_EQ(statfs(directory.path().c_str(), &status), 0);
  constexpr long kTmpfs = 0x01021994;
  const bool is_tmpfs = status.f_type == kTmpfs;
  std::map<std::pair<Kind, int>, int> outcomes;
  const std::int64_t operations = number_from("PERDURA_FS_OPERATIONS", 20'000);
  for (std::int64_t done = 0; done < operations && !HasFailure(); done += kSequence) {
    const auto number = static_cast<std::uint32_t>(done / kSequence);
    Drawn drawn{.allocation = number % 2 != 0,
                .zero_range = !is_tmpfs,
                .others_remove_lists = !is_tmpfs,
                .largest = is_tmpfs ? static_cast<std::int64_t>(kLargestFile) : (1LL << 43)};
    if (kernel_setting("protected_symlinks") != 0) drawn.never_with_sticky |= 02;
    if (kernel_setting("protected_regular") != 0) drawn.never_with_sticky |= 022;
    const auto root = directory.path() / std::to_string(number);
    std::filesystem::create_directory(root);
    ASSERT_EQ(chmod(root.c_str(), 0755), 0);
    // A thread that has a root of its own.
    std::thread([&] {
      Comparison comparison(root, seed * 1'000'003 + number, drawn);
      const std::string difference = comparison.run(kSequence);
      EXPECT_EQ(difference, "") << "sequence " << number;
      for (const auto& [outcome, times] : comparison.outcomes()) outcomes[outcome] += times;
    }).join();
    std::filesystem::remove_all(root);
  }
  for (int kind = 0; operations >= 20'000 && kind < static_cast<int>(Kind::count); ++kind) {
    const auto succeeded = outcomes.find({static_cast<Kind>(kind), 0});
    EXPECT_TRUE(HasFailure() || succeeded != outcomes.end())
        << text_of(Operation{.kind = static_cast<Kind>(kind)}) << " never succeeds";
  }
}

}  // namespace
}  // namespace perdura::fs::test
