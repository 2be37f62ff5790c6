// Locks of ranges are those of a table with an entry for each byte, and waiting ends.
#include "tests/services/fs/posix/locks.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

constexpr InodeNumber kFile{7};
constexpr std::size_t kBytes = 12;
constexpr std::size_t kOwners = 4;

std::array<int, kOwners> owner_marks;
LockTable::Owner owner(std::size_t number) { return &owner_marks[number]; }

// What each owner has locked of each byte.
using Naive = std::array<std::array<LockType, kBytes>, kOwners>;

bool excludes(const Naive& naive, std::size_t who, const RangeLock& lock) {
  for (std::size_t other = 0; other < kOwners; ++other) {
    for (Bytes at = lock.begin; other != who && at < std::min<Bytes>(lock.end, kBytes); ++at) {
      const LockType held = naive[other][at];
      if (held == LockType::exclusive ||
          (held == LockType::shared && lock.type == LockType::exclusive)) {
        return true;
      }
    }
  }
  return false;
}

TEST(FsLocksTest, RangesAreThoseOfTheirBytes) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  LockTable table;
  Naive naive{};
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t who = random() % kOwners;
    RangeLock lock{.type = static_cast<LockType>(random() % 3), .begin = random() % kBytes};
    lock.end = lock.begin + 1 + random() % (kBytes - lock.begin);
    const bool excluded = lock.type != LockType::none && excludes(naive, who, lock);
    ASSERT_EQ(table.set(kFile, owner(who), lock).has_value(), !excluded) << "step " << i;
    if (!excluded) {
      for (Bytes at = lock.begin; at < lock.end; ++at) naive[who][at] = lock.type;
    }
    // What each owner would be told of each byte, and of how far the same lock goes.
    const std::size_t asking = random() % kOwners;
    const Bytes byte = random() % kBytes;
    const RangeLock probe{.type = LockType::exclusive, .begin = byte, .end = byte + 1};
    const auto told = table.test(kFile, owner(asking), probe);
    ASSERT_EQ(told.has_value(), excludes(naive, asking, probe)) << "step " << i;
    if (!told) continue;
    const auto is_whole = [&](std::size_t other) {
      const auto& bytes = naive[other];
      if (other == asking || bytes[byte] != told->type) return false;
      Bytes begin = byte;
      Bytes end = byte;
      while (begin > 0 && bytes[begin - 1] == told->type) --begin;
      while (end < kBytes && bytes[end] == told->type) ++end;
      return begin == told->begin && end == told->end;
    };
    bool found = false;
    for (std::size_t other = 0; other < kOwners; ++other) found |= is_whole(other);
    ASSERT_TRUE(found) << "step " << i << ": ranges that touch are one";
  }
  for (std::size_t who = 0; who < kOwners; ++who) table.release(kFile, owner(who));
  EXPECT_TRUE(table.is_empty());
}

class FsLockWaitTest : public testing::Test {
 protected:
  // Returns the error, 0 if it has the lock, 1 if it waits.
  std::string ask(std::size_t who, Bytes byte, LockType type = LockType::exclusive) {
    const auto got = table_.set_or_wait(kFile, owner(who), {type, byte, byte + 1},
                                        [this, who] { granted_ += std::to_string(who); });
    if (!got) return std::make_error_code(got.error()).message();
    return *got ? "has" : "waits";
  }
  void unlock(std::size_t who, Bytes byte) {
    ASSERT_TRUE(table_.set(kFile, owner(who), {LockType::none, byte, byte + 1}));
  }

  LockTable table_;
  std::string granted_;
};

TEST_F(FsLockWaitTest, GivesLocksInTheOrderOfAsking) {
  EXPECT_EQ(ask(0, 5), "has");
  EXPECT_EQ(ask(1, 5, LockType::shared), "waits");
  EXPECT_EQ(ask(2, 5), "waits");
  EXPECT_EQ(ask(3, 5, LockType::shared), "waits");
  unlock(0, 5);
  EXPECT_EQ(granted_, "13");
  unlock(1, 5);
  EXPECT_EQ(granted_, "13");
  table_.release(kFile, owner(3));
  EXPECT_EQ(granted_, "132");
}

TEST_F(FsLockWaitTest, RefusesACircleOfAnyLength) {
  for (std::size_t length = 2; length <= kOwners; ++length) {
    for (std::size_t who = 0; who < length; ++who) EXPECT_EQ(ask(who, who), "has");
    for (std::size_t who = 0; who + 1 < length; ++who) EXPECT_EQ(ask(who, who + 1), "waits");
    EXPECT_EQ(ask(length - 1, 0),
              std::make_error_code(std::errc::resource_deadlock_would_occur).message());
    // Without the last there is none, and all get on one after the other.
    granted_.clear();
    for (std::size_t who = length; who-- > 0;) table_.release(kFile, owner(who));
    EXPECT_EQ(granted_.size(), length - 1);
    EXPECT_TRUE(table_.is_empty());
  }
}

TEST_F(FsLockWaitTest, EndsWithASignal) {
  EXPECT_EQ(ask(0, 1), "has");
  EXPECT_EQ(ask(1, 1), "waits");
  table_.stop_waiting(owner(1));
  unlock(0, 1);
  EXPECT_EQ(granted_, "");
  EXPECT_TRUE(table_.is_empty());
}

TEST(FsWholeLocksTest, AreApartFromRanges) {
  LockTable table;
  EXPECT_TRUE(table.set_whole(kFile, owner(0), LockType::shared));
  EXPECT_TRUE(table.set_whole(kFile, owner(1), LockType::shared));
  EXPECT_TRUE(table.set(kFile, owner(2), {.type = LockType::exclusive}));
  // A change that is refused loses the lock.
  EXPECT_EQ(table.set_whole(kFile, owner(0), LockType::exclusive).error(),
            std::errc::resource_unavailable_try_again);
  EXPECT_TRUE(table.set_whole(kFile, owner(1), LockType::exclusive));
  EXPECT_FALSE(table.set_whole(kFile, owner(0), LockType::shared));
  for (std::size_t who = 0; who < kOwners; ++who) table.release(kFile, owner(who));
  EXPECT_TRUE(table.is_empty());
}

}  // namespace
}  // namespace perdura::fs::test
