// The ranges that a device is to commit, against a set of single bytes.
#include "platform/fabric/dirty_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/seed.h"

namespace perdura::fabric {
namespace {

constexpr Bytes kFileEnd = 2000;

// Ranges in which each single change is checked: another process may have to go on from there.
class WatchedRanges {
 public:
  explicit WatchedRanges(const std::set<Bytes>& dirty) : dirty_(dirty) {}

  std::size_t size() const { return ranges_.size(); }
  const DirtyRange& at(std::size_t i) const { return ranges_.at(i); }
  void put(std::size_t i, const DirtyRange& range) {
    ranges_.at(i) = range;
    expect_all();
  }
  void add_last(const DirtyRange& range) {
    ranges_.push_back(range);
    expect_all();
  }
  void drop_last() {
    ranges_.pop_back();
    expect_all();
  }

  bool holds(Bytes at) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [at](const DirtyRange& range) {
      return range.begin <= at && at < range.end;
    });
  }

 private:
  void expect_all() const {
    for (const Bytes at : dirty_) ASSERT_TRUE(holds(at)) << at << " is lost halfway";
  }

  const std::set<Bytes>& dirty_;  // before the range that is being added
  std::vector<DirtyRange> ranges_;
};

TEST(DirtyRanges, HoldWhatWasChangedAndAreFew) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::set<Bytes> dirty;
    WatchedRanges ranges(dirty);
    bool is_exact = true;  // as long as none was one too many
    const Bytes longest = 1 + random() % 100;
    for (int i = 0; i < 60; ++i) {
      const Bytes begin = random() % kFileEnd;
      const DirtyRange added{begin, begin + random() % longest};
      is_exact = is_exact && ranges.size() < kDirtyRanges;
      add_dirty(ranges, added);
      for (Bytes at = added.begin; at < added.end; ++at) dirty.insert(at);
      ASSERT_LE(ranges.size(), kDirtyRanges);
      for (const Bytes at : dirty) ASSERT_TRUE(ranges.holds(at)) << at;
      for (std::size_t a = 0; a < ranges.size(); ++a) {
        ASSERT_LT(ranges.at(a).begin, ranges.at(a).end);
        for (std::size_t b = 0; b < a; ++b) {
          ASSERT_GT(gap_between(ranges.at(a), ranges.at(b)), 0U) << "two that touch are one";
        }
      }
      if (!is_exact) continue;
      for (Bytes at = 0; at < kFileEnd + longest; ++at) {
        ASSERT_EQ(ranges.holds(at), dirty.contains(at)) << at;
      }
    }
  }
}

TEST(DirtyRanges, OneTooManyIsJoinedWithTheNearest) {
  DirtyRanges ranges;
  for (Bytes i = 0; i < kDirtyRanges; ++i) ranges.add({i * 100, i * 100 + 10});
  ranges.add({330, 340});
  ASSERT_EQ(ranges.size(), kDirtyRanges);
  std::size_t longer = 0;
  for (const DirtyRange& range : ranges.all()) {
    if (range.end - range.begin == 10) continue;
    ++longer;
    EXPECT_EQ(range.begin, 300U);
    EXPECT_EQ(range.end, 340U);
  }
  EXPECT_EQ(longer, 1U);
}

// A range is not forgotten before all of it is in memory, whatever it was joined with.
TEST(DirtyRanges, AreDroppedWhenAllOfThemIsInMemory) {
  DirtyRanges ranges;
  ranges.add({0, 10, Time(Nanoseconds(5))});
  ranges.add({10, 20, Time(Nanoseconds(8))});
  ranges.add({50, 60, Time(Nanoseconds(6))});
  EXPECT_EQ(ranges.placed(), Time(Nanoseconds(8)));
  ranges.drop_placed(Time(Nanoseconds(7)));
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges.at(0).begin, 0U);
  EXPECT_EQ(ranges.at(0).end, 20U);
  ranges.drop_placed(Time(Nanoseconds(8)));
  EXPECT_EQ(ranges.size(), 0U);
  EXPECT_EQ(ranges.placed(), Time{});
}

}  // namespace
}  // namespace perdura::fabric
