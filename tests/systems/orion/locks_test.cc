// Advisory locks as the MDS keeps them: ranges of an owner are merged and split, and other owners'
// conflicting ones are refused.
#include "systems/orion/mds/locks.h"

#include <gtest/gtest.h>

namespace perdura::systems::orion {
namespace {

using fs::FileLock;
using fs::LockKind;
using fs::LockMode;

constexpr std::uint64_t kInode = 7;

FileLock range(LockMode mode, Bytes first, Bytes last, std::uint64_t owner = 1) {
  return {.kind = LockKind::ranges, .mode = mode, .first = first, .last = last, .owner = owner};
}

TEST(Locks, GiveUpPartsAndKeepTheRest) {
  Locks locks;
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::exclusive, 0, 99)), std::errc{});
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::none, 40, 59)), std::errc{});
  EXPECT_EQ(locks.set(2, kInode, range(LockMode::shared, 40, 59)), std::errc{});
  for (const Bytes taken : {0, 39, 60, 99}) {
    EXPECT_EQ(locks.set(2, kInode, range(LockMode::shared, taken, taken)),
              std::errc::resource_unavailable_try_again);
  }
  const auto forbids = locks.forbidding(2, kInode, range(LockMode::shared, 0, 99));
  ASSERT_TRUE(forbids);
  EXPECT_EQ(forbids->last - forbids->first, 39U);
}

TEST(Locks, OfOneOwnerChangeTheirModeAndAreMerged) {
  Locks locks;
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::shared, 0, 9)), std::errc{});
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::shared, 20, 29)), std::errc{});
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::shared, 10, 19)), std::errc{});
  const auto all = locks.forbidding(2, kInode, range(LockMode::exclusive, 5, 5));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->first, 0U);
  EXPECT_EQ(all->last, 29U);
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::exclusive, 0, 29)), std::errc{});
  EXPECT_TRUE(locks.forbidding(2, kInode, range(LockMode::shared, 15, 15)));
}

// The same number of an owner is another owner on another mount, and another kind.
TEST(Locks, BelongToAnOwnerOfAMountAndKind) {
  Locks locks;
  const FileLock all{.kind = LockKind::files, .mode = LockMode::exclusive, .owner = 1};
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::exclusive, 0, 9)), std::errc{});
  EXPECT_EQ(locks.set(2, kInode, range(LockMode::exclusive, 0, 9)),
            std::errc::resource_unavailable_try_again);
  EXPECT_EQ(locks.set(2, kInode, all), std::errc{});
  EXPECT_EQ(locks.set(1, kInode, all), std::errc::resource_unavailable_try_again);
  locks.end(2);
  EXPECT_EQ(locks.set(1, kInode, all), std::errc{});
  locks.end(1, kInode);
  EXPECT_EQ(locks.set(2, kInode, range(LockMode::exclusive, 0, 9)), std::errc{});
}

TEST(Locks, AreNotTakenWithoutEnd) {
  Locks locks;
  for (Bytes i = 0; i < Locks::kMost; ++i) {
    ASSERT_EQ(locks.set(1, kInode, range(LockMode::shared, 2 * i, 2 * i)), std::errc{});
  }
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::shared, 1 << 20, 1 << 20)),
            std::errc::no_lock_available);
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::none, 0, fs::kLargestFile)), std::errc{});
  EXPECT_FALSE(locks.forbidding(2, kInode, range(LockMode::exclusive, 0, fs::kLargestFile)));
  EXPECT_EQ(locks.set(1, kInode, range(LockMode::shared, 1, 0)), std::errc::invalid_argument);
}

}  // namespace
}  // namespace perdura::systems::orion
