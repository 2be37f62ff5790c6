// Processes of several threads in one file system: whatever comes between the steps of a system
// call, what it holds it gives back, and what it finds is what it looked for.
#include <gtest/gtest.h>

#include <thread>

#include "tests/services/fs/posix/look_up.h"
#include "tests/services/fs/posix/sides.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

TEST(FsThreadsTest, LeaveNothingBehind) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr std::size_t kThreads = 3;
  constexpr int kOperations = 4000;
  ModelFileSystem files;
  std::vector<std::thread> threads;
  for (std::uint32_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&files, seed, number] {
      std::mt19937 random(seed + number);
      ModelSession session(files);
      ProcessSide process(session, {});
      Known known{.paths = {"/", "/a", "/b", "/a/a", "/a/b"}, .slots = {}};
      for (int i = 0; i < kOperations; ++i) {
        known.slots = process.open_slots();
        process.apply(draw(random, {}, known));
      }
      process.exit();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files.model().audit(), "");
  EXPECT_EQ(difference(tree_of(files.model()), tree_of(files.model())), "");
  // Nothing is held any more.
  Model left = files.model();
  const std::uint64_t inodes = left.statistics()->free_inodes;
  left.end_holds();
  EXPECT_EQ(left.statistics()->free_inodes, inodes);
  EXPECT_TRUE(left == files.model());
}

// The number of what was found is used again, before it is held.
TEST(FsLookUpTest, DoesNotHoldWhatHasTakenTheNumber) {
  ModelFileSystem files;
  ModelSession session(files);
  const Result<Attributes> first =
      run_at_once(session.create(kRootInode, "a", {.mode = S_IFREG | 0644}, {}));
  ASSERT_TRUE(first);
  ASSERT_TRUE(run_at_once(session.unlink(kRootInode, "a", {})));
  EXPECT_EQ(run_at_once(hold_found(session, *first)).error(), std::errc::no_such_file_or_directory);
  const Result<Attributes> second =
      run_at_once(session.create(kRootInode, "b", {.mode = S_IFREG | 0644}, {}));
  ASSERT_EQ(second->inode, first->inode);
  EXPECT_EQ(run_at_once(hold_found(session, *first)).error(), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(run_at_once(hold_found(session, *second)));
  run_at_once(session.release(second->inode, 1));
  Model left = files.model();
  left.end_holds();
  EXPECT_TRUE(left == files.model());
}

}  // namespace
}  // namespace perdura::fs::test
