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
//     in, as setting one does; on ext4 and here it does not.
//   - The time of change of an attribute that is set to the value that it has, of a list that is
//     removed and is not there, or that says no more than the mode: ext4 and tmpfs disagree.
//   - open() with O_CREAT of a symbolic link, a socket or a device that it may not follow or open,
//   in
//     a sticky directory that all may write: the kernel says EACCES for what it refuses anyway.
//   - Sizes of directories, and times of access (the kernel's clock for them is coarse).
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/services/fs/posix/comparison.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

using Kind = Operation::Kind;

// Sequences begin anew after so many operations, or trees grow without bounds.
constexpr std::int64_t kSequence = 2000;

// Compares with a model, which must be whole afterwards, with nothing held.
void compare_model(Ground& ground, const std::function<void(Comparison&)>& compare) {
  ground.in_directory([&](const std::string& directory) {
    ModelFileSystem files(Model({.now = Comparison::kBegin, .capacity = 64 * GiB}));
    ModelSession session(files);
    Comparison comparison(directory, session);
    compare(comparison);
    comparison.leave();
    EXPECT_EQ(files.model().audit(), "");
    Model left = files.model();
    left.end_holds();
    EXPECT_TRUE(left == files.model()) << "something is still held";
  });
}

TEST(FsKernelTest, HasTheSameResultsErrorsAndTrees) {
  Ground ground;
  if (!ground.why_not().empty()) GTEST_SKIP() << ground.why_not();
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const char* const given = std::getenv("PERDURA_FS_OPERATIONS");
  const std::int64_t operations = given == nullptr ? 20'000 : std::strtoll(given, nullptr, 10);
  std::map<std::pair<Kind, int>, int> outcomes;
  const auto never_succeeded = [&] {
    std::string kinds;
    for (int kind = 0; kind < static_cast<int>(Kind::count); ++kind) {
      if (outcomes.contains({static_cast<Kind>(kind), 0})) continue;
      kinds += text_of(Operation{.kind = static_cast<Kind>(kind)}) + "\n";
    }
    return kinds;
  };
  // Some calls rarely succeed. What is drawn is worth something only if each does, so more is drawn
  // where one has not yet.
  const auto is_enough = [&](std::int64_t done) {
    return done >= 10 * operations || (done >= operations && never_succeeded().empty());
  };
  for (std::int64_t done = 0; !is_enough(done) && !HasFailure(); done += kSequence) {
    const auto number = static_cast<std::uint32_t>(done / kSequence);
    const Drawn drawn = ground.drawn(number % 2 != 0);
    compare_model(ground, [&](Comparison& comparison) {
      EXPECT_EQ(comparison.apply_random(seed * 1'000'003 + number, drawn, kSequence), "")
          << "sequence " << number << " of seed " << seed;
      for (const auto& [outcome, times] : comparison.outcomes()) outcomes[outcome] += times;
    });
  }
  EXPECT_TRUE(HasFailure() || never_succeeded().empty()) << never_succeeded() << "never succeed";
}

// Every combination of set-id, sticky and execute bits, of a file and of a directory, of an owner
// that is in the group or is not, and every user that changes owner, group, mode or data.
TEST(FsKernelTest, TreatsSetIdBitsAlike) {
  Ground ground;
  if (!ground.why_not().empty()) GTEST_SKIP() << ground.why_not();
  compare_model(ground, [](Comparison& comparison) {
    const auto apply = [&](const Operation& operation) {
      ASSERT_EQ(comparison.apply(operation), "");
    };
    const auto with_bits = [](std::uint32_t number) {
      return (number & 7) << 9 | (number & 8) << 3 | (number & 16) >> 1 | (number & 32) >> 5 | 0666;
    };
    apply({.kind = Kind::mknod, .path = "f", .mode = S_IFREG | 0644});
    apply({.kind = Kind::mkdir, .path = "d", .mode = 0755});
    for (std::uint32_t number = 0; number < 64; ++number) {
      for (const std::string path : {"f", "d"}) {
        for (const std::uint32_t gid : {1000U, 2001U}) {
          for (std::size_t user = 0; user < kUsers.size(); ++user) {
            const auto change = [&](Operation operation) {
              apply({.kind = Kind::chown, .path = path, .uid = 1000, .gid = gid});
              apply({.kind = Kind::chmod, .path = path, .mode = with_bits(number)});
              operation.user = user;
              if (operation.path.empty()) operation.path = path;
              apply(operation);
            };
            change({.kind = Kind::chown});
            change({.kind = Kind::chown, .uid = 1000});
            change({.kind = Kind::chown, .gid = 2000});
            change({.kind = Kind::chown, .uid = 1001, .gid = 1001});
            change({.kind = Kind::chmod, .mode = with_bits(~number)});
            change({.kind = Kind::truncate, .offset = 100});
            change({.kind = Kind::open, .flags = O_WRONLY | O_TRUNC});
            change({.kind = Kind::open, .flags = O_RDWR});
            change({.kind = Kind::write, .data = "x"});
            change({.kind = Kind::allocate, .offset = 0, .length = 10});
            change({.kind = Kind::ftruncate, .offset = 10});
            change({.kind = Kind::link, .other = "l"});
            change({.kind = Kind::unlink, .path = "l"});
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// A sticky directory or not, by the owners of the directory, of what is in it and of what it is to
// replace: who may remove, rename, replace and exchange.
TEST(FsKernelTest, TreatsStickyDirectoriesAlike) {
  Ground ground;
  if (!ground.why_not().empty()) GTEST_SKIP() << ground.why_not();
  compare_model(ground, [](Comparison& comparison) {
    const auto apply = [&](const Operation& operation) {
      ASSERT_EQ(comparison.apply(operation), "");
    };
    apply({.kind = Kind::umask, .mode = 0});
    apply({.kind = Kind::mkdir, .path = "e", .mode = 0777});
    apply({.kind = Kind::mkdir, .path = "d", .mode = 0777});
    for (const std::uint32_t mode : {0777U, 01777U, 01775U, 0755U}) {
      for (const std::uint32_t in : {0U, 1000U, 1001U}) {
        for (const std::uint32_t of : {0U, 1000U, 1001U}) {
          for (const std::uint32_t other : {0U, 1000U, 1001U}) {
            for (std::size_t user = 1; user < kUsers.size(); ++user) {
              apply({.kind = Kind::chown, .path = "d", .uid = in, .gid = 1000});
              apply({.kind = Kind::chmod, .path = "d", .mode = mode});
              const auto try_with = [&](Operation operation) {
                apply({.kind = Kind::mknod, .path = "d/a", .mode = S_IFREG | 0666});
                apply({.kind = Kind::chown, .path = "d/a", .uid = of, .gid = 0});
                apply({.kind = Kind::mkdir, .path = "d/b", .mode = 0777});
                apply({.kind = Kind::mknod, .path = "d/c", .mode = S_IFREG | 0666});
                apply({.kind = Kind::chown, .path = "d/c", .uid = other, .gid = 0});
                operation.user = user;
                apply(operation);
              };
              using enum RenameMode;
              const auto rename = [&](const char* from, const char* to, RenameMode how) {
                try_with({.kind = Kind::rename,
                          .path = from,
                          .other = to,
                          .flags = static_cast<int>(how)});
              };
              try_with({.kind = Kind::unlink, .path = "d/a"});
              try_with({.kind = Kind::rmdir, .path = "d/b"});
              rename("d/a", "d/c", replace);
              rename("d/a", "d/n", keep);
              try_with({.kind = Kind::unlink, .path = "d/n"});
              rename("d/a", "d/c", exchange);
              rename("d/c", "e/c", replace);
              rename("e/c", "d/a", exchange);
              rename("d/b", "e/b", replace);
              rename("e/b", "d/b", replace);
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace perdura::fs::test
