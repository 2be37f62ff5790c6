// What the comparison with the kernel does not show: locks, forks, positions in directories, times
// of access, and the limits of paths.
#include "tests/services/fs/posix/process.h"

#include <gtest/gtest.h>

#include <set>

#include "services/fs/model/model_file_system.h"
#include "tests/services/fs/bytes_of.h"

namespace perdura::fs::test {
namespace {

class FsProcessTest : public testing::Test {
 protected:
  std::unique_ptr<Process> process(Credentials credentials = {}) {
    return std::make_unique<Process>(
        session_, std::move(credentials), [this] { return now_; }, Process::Options(), &locks_);
  }
  template <class T>
  Result<T> call(Task<Result<T>> task) {
    return run_at_once(std::move(task));
  }
  void TearDown() override {
    run_at_once_void(process_->exit());
    EXPECT_EQ(files_.model().audit(), "");
    EXPECT_TRUE(locks_.is_empty());
  }
  static void run_at_once_void(Task<> task) { run_at_once(std::move(task)); }

  Timestamp now_{100, 0};
  ModelFileSystem files_;
  ModelSession session_{files_};
  LockTable locks_;
  std::unique_ptr<Process> process_ = process();
};

TEST_F(FsProcessTest, FollowsFortySymbolicLinks) {
  ASSERT_TRUE(call(process_->mknod("0", S_IFREG | 0644, 0)));
  for (int i = 1; i <= kMostSymlinks + 1; ++i) {
    ASSERT_TRUE(call(process_->symlink(std::to_string(i - 1), std::to_string(i))));
  }
  EXPECT_TRUE(call(process_->stat(std::to_string(kMostSymlinks))));
  EXPECT_EQ(call(process_->stat(std::to_string(kMostSymlinks + 1))).error(),
            std::errc::too_many_symbolic_link_levels);
  ASSERT_TRUE(call(process_->symlink("loop", "loop")));
  EXPECT_EQ(call(process_->stat("loop")).error(), std::errc::too_many_symbolic_link_levels);
}

TEST_F(FsProcessTest, PathsHaveALargestLength) {
  const std::string name(kLongestName, 'd');
  std::string path;
  while (path.size() + name.size() + 1 <= kLongestPath) {
    path += "/" + name;
    ASSERT_TRUE(call(process_->mkdir(path, 0755)));
  }
  EXPECT_EQ(path.size() % (kLongestName + 1), 0u);
  EXPECT_EQ(call(process_->stat(path + std::string(kLongestPath - path.size(), '/')))->links, 2u);
  EXPECT_EQ(call(process_->stat(path + std::string(kLongestPath - path.size() + 1, '/'))).error(),
            std::errc::filename_too_long);
  // By directories on the way, any depth.
  ASSERT_TRUE(call(process_->chdir(path)));
  EXPECT_TRUE(call(process_->mkdir(name, 0755)));
}

TEST_F(FsProcessTest, ReadsGoByRelatime) {
  const int file = call(process_->open("f", O_CREAT | O_RDWR, 0644)).value();
  ASSERT_TRUE(call(process_->write(file, bytes_of("text"))));
  std::array<std::byte, 4> into{};
  const auto read_at = [&](Timestamp when) {
    now_ = when;
    EXPECT_TRUE(call(process_->pread(file, into, 0)));
    return call(process_->stat(file))->accessed;
  };
  EXPECT_EQ(read_at({200, 0}), (Timestamp{200, 0}));
  EXPECT_EQ(read_at({300, 0}), (Timestamp{200, 0}));
  EXPECT_EQ(read_at({200 + 86'400, 0}), (Timestamp{200 + 86'400, 0}));
  EXPECT_EQ(call(process_->stat(file))->changed, (Timestamp{100, 0}));
}

TEST_F(FsProcessTest, AListChangesTheModeAndTheTimeOfChange) {
  using Tag = AccessList::Tag;
  ASSERT_TRUE(call(process_->mknod("f", S_IFREG | 0644, 0)));
  AccessList list{{{Tag::owner, 7, 0},
                   {Tag::user, 6, 1000},
                   {Tag::owning_group, 0, 0},
                   {Tag::mask, 5, 0},
                   {Tag::other, 1, 0}}};
  const auto set = [&](Timestamp when) {
    now_ = when;
    const std::vector<std::byte> value = list.format();
    EXPECT_TRUE(call(process_->setxattr("f", kAccessList, value)));
    EXPECT_EQ(call(process_->stat("f"))->changed, when);
  };
  set({200, 0});
  EXPECT_EQ(call(process_->stat("f"))->mode, S_IFREG | 0751u);
  EXPECT_EQ(call(process_->getxattr("f", kAccessList)), list.format());
  list = {{{Tag::owner, 6, 0}, {Tag::owning_group, 4, 0}, {Tag::other, 0, 0}}};
  set({300, 0});
  EXPECT_EQ(call(process_->stat("f"))->mode, S_IFREG | 0640u);
  EXPECT_EQ(call(process_->getxattr("f", kAccessList)).error(), std::errc::no_message_available);
}

// telldir() and seekdir(), while others change the directory.
TEST_F(FsProcessTest, PositionsInADirectoryStayRight) {
  ASSERT_TRUE(call(process_->mkdir("d", 0755)));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(call(process_->mknod("d/" + std::to_string(i), S_IFREG | 0644, 0)));
  }
  const int directory = call(process_->open("d", O_RDONLY | O_DIRECTORY)).value();
  std::vector<std::pair<std::uint64_t, std::string>> walked;
  while (true) {
    const std::uint64_t position = process_->telldir(directory).value();
    const auto entry = call(process_->readdir(directory)).value();
    if (!entry) break;
    walked.emplace_back(position, entry->name);
  }
  ASSERT_EQ(walked.size(), 102u);
  EXPECT_EQ(walked[0].second, ".");
  EXPECT_EQ(walked[1].second, "..");
  for (int i = 0; i < 100; i += 2) {
    ASSERT_TRUE(call(process_->unlink("d/" + walked[2 + i].second)));
  }
  for (std::size_t i = 3; i < walked.size(); i += 2) {
    ASSERT_TRUE(process_->seekdir(directory, walked[i].first));
    EXPECT_EQ(call(process_->readdir(directory)).value()->name, walked[i].second);
    ASSERT_TRUE(process_->seekdir(directory, walked[i - 1].first));
    EXPECT_EQ(call(process_->readdir(directory)).value()->name,
              i == 3 ? walked[3].second : walked[i].second);
  }
}

TEST_F(FsProcessTest, WhatIsForkedSharesOffsetsAndOpenFiles) {
  const int file = call(process_->open("f", O_CREAT | O_RDWR, 0644)).value();
  const int same = process_->dup(file).value();
  auto child = run_at_once(process_->fork());
  ASSERT_TRUE(call(process_->write(file, bytes_of("one"))));
  ASSERT_TRUE(call(child->write(same, bytes_of("two"))));
  EXPECT_EQ(call(process_->lseek(same, 0, SEEK_CUR)), 6u);
  ASSERT_TRUE(call(process_->unlink("f")));
  ASSERT_TRUE(call(process_->close(file)));
  ASSERT_TRUE(call(process_->close(same)));
  std::array<std::byte, 6> into{};
  EXPECT_EQ(call(child->pread(file, into, 0)), 6u);
  run_at_once(child->exit());
  EXPECT_EQ(files_.model().statistics()->free_inodes + 1, files_.model().statistics()->inodes);
}

TEST_F(FsProcessTest, LocksEndWithTheirOwners) {
  auto other = process();
  const int file = call(process_->open("f", O_CREAT | O_RDWR, 0644)).value();
  const int theirs = call(other->open("f", O_RDWR)).value();
  const RangeLock lock{LockType::exclusive, 10, 20};
  using enum LockOwnership;
  ASSERT_TRUE(process_->lock_range(file, lock, LockOwnership::process));
  EXPECT_EQ(other->lock_range(theirs, lock, LockOwnership::process).error(),
            std::errc::resource_unavailable_try_again);
  EXPECT_EQ(other->test_range(theirs, lock, open_file)->value(), lock);
  // Any descriptor's closing ends those of a process, and only these.
  const int again = call(process_->open("f", O_RDONLY)).value();
  ASSERT_TRUE(process_->lock_range(file, {LockType::exclusive, 30, 40}, open_file));
  ASSERT_TRUE(call(process_->close(again)));
  EXPECT_TRUE(other->lock_range(theirs, lock, LockOwnership::process));
  EXPECT_FALSE(other->lock_range(theirs, {LockType::shared, 35, 36}, LockOwnership::process));
  const int copy = process_->dup(file).value();
  ASSERT_TRUE(call(process_->close(file)));
  EXPECT_FALSE(other->lock_range(theirs, {LockType::shared, 35, 36}, LockOwnership::process));
  ASSERT_TRUE(call(process_->close(copy)));
  EXPECT_TRUE(other->lock_range(theirs, {LockType::shared, 35, 36}, LockOwnership::process));
  // Of a file that is open for reading, only shared ones.
  const int reading = call(process_->open("f", O_RDONLY)).value();
  EXPECT_EQ(process_->lock_range(reading, {LockType::exclusive, 0, 1}, open_file).error(),
            std::errc::bad_file_descriptor);
  EXPECT_TRUE(process_->flock(reading, LockType::exclusive));
  EXPECT_EQ(other->flock(theirs, LockType::shared).error(),
            std::errc::resource_unavailable_try_again);
  ASSERT_TRUE(call(process_->close(reading)));
  EXPECT_TRUE(other->flock(theirs, LockType::shared));
  run_at_once(other->exit());
}

// An open in a directory that is full of another user's rules is no surprise.
TEST_F(FsProcessTest, PipesAndDevicesAreNames) {
  ASSERT_TRUE(call(process_->mknod("p", S_IFIFO | 0644, 0)));
  ASSERT_TRUE(call(process_->mknod("s", S_IFSOCK | 0644, 0)));
  EXPECT_EQ(call(process_->open("p", O_RDONLY)).error(), std::errc::operation_not_supported);
  EXPECT_EQ(call(process_->open("s", O_RDONLY)).error(), std::errc::no_such_device_or_address);
  EXPECT_TRUE(call(process_->open("p", O_PATH)));
}

}  // namespace
}  // namespace perdura::fs::test
