// RangeMtt and FlatMtt, against a table that has an entry for each page.
#include "platform/fabric/translation/range_mtt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "platform/base/error.h"
#include "tests/support/seed.h"

namespace perdura::fabric {
namespace {

constexpr std::uint32_t kLastPage = std::numeric_limits<std::uint32_t>::max();

// The tables' pages are those from `begin` on.
class PagesOracle {
 public:
  PagesOracle(std::uint32_t begin, std::uint32_t pages) : begin_(begin), targets_(pages) {}
  void map(const RangeEntry& entry) {
    for (std::uint32_t i = 0; i < entry.pages; ++i) at(entry.base + i) = entry.target + i;
  }
  void unmap(std::uint32_t base, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) at(base + i).reset();
  }
  std::optional<std::uint64_t>& at(std::uint32_t page) { return targets_[page - begin_]; }
  std::vector<RangeEntry> ranges() const {
    std::vector<RangeEntry> all;
    for (std::uint32_t i = 0; i < targets_.size(); ++i) {
      if (!targets_[i]) continue;
      const bool goes_on = !all.empty() && all.back().end() == std::uint64_t{begin_} + i &&
                           all.back().target + all.back().pages == *targets_[i];
      if (goes_on) {
        ++all.back().pages;
      } else {
        all.push_back({begin_ + i, 1, *targets_[i]});
      }
    }
    return all;
  }

 private:
  std::uint32_t begin_;
  std::vector<std::optional<std::uint64_t>> targets_;
};

void expect_same(const RangeMtt& table, PagesOracle& oracle, std::uint32_t begin,
                 std::uint32_t pages) {
  std::vector<RangeEntry> entries;
  table.each([&](const RangeEntry& entry) { entries.push_back(entry); });
  const std::vector<RangeEntry> wanted = oracle.ranges();
  ASSERT_EQ(entries, wanted);
  ASSERT_EQ(table.entries(), wanted.size());
  for (std::uint32_t i = 0; i < pages; ++i) {
    const std::uint32_t page = begin + i;
    const RangeMtt::LookUp found = table.find(page);
    ASSERT_EQ(found.entry.has_value(), oracle.at(page).has_value()) << page;
    ASSERT_GE(found.visits, 1U);
    ASSERT_LE(found.visits, table.height());
    if (found.entry) {
      ASSERT_EQ(found.visits, table.height());
      ASSERT_EQ(found.entry->target + (page - found.entry->base), *oracle.at(page));
    }
    const auto next = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const RangeEntry& each) { return each.end() > page; });
    const std::optional<RangeEntry> first = table.first_from(page);
    ASSERT_EQ(first.has_value(), next != wanted.end()) << page;
    if (first) {
      ASSERT_EQ(*first, *next);
    }
  }
}

void expect_counted(const RangeMtt& table) {
  const RangeMtt::Counts& counts = table.counts();
  EXPECT_EQ(counts.inserts - counts.removes, table.entries());
}

TEST(RangeMtt, HasWhatWasMappedLastAndMergesWhatAdjoins) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kPages = 3000;
  for (const std::uint32_t begin : {std::uint32_t{0}, kLastPage - kPages + 1}) {
    RangeMtt table;
    FlatMtt flat;
    PagesOracle oracle(begin, kPages);
    std::uint32_t highest = 0;
    for (int i = 0; i < 6000; ++i) {
      // At first many small ranges that do not adjoin, then large ones that remove most.
      const std::uint32_t longest = i < 4000 ? 3 : 400;
      const auto first = static_cast<std::uint32_t>(random() % kPages);
      const auto count = static_cast<std::uint32_t>(1 + random() % longest);
      const std::uint32_t pages = std::min(count, kPages - first);
      const bool maps = random() % 4 != 0;
      if (maps) {
        const std::uint64_t target = random() % 3 == 0 ? 5000 + first : random() % 100000;
        table.map({begin + first, pages, target});
        oracle.map({begin + first, pages, target});
        if (begin == 0) flat.map({first, pages, target});
      } else {
        table.unmap(begin + first, pages);
        oracle.unmap(begin + first, pages);
        if (begin == 0) flat.unmap(first, pages);
      }
      ASSERT_NO_THROW(table.audit()) << i;
      if (i % 200 == 0) expect_same(table, oracle, begin, kPages);
      highest = std::max(highest, table.height());
    }
    expect_same(table, oracle, begin, kPages);
    expect_counted(table);
    EXPECT_GE(highest, 3U);
    EXPECT_GT(table.counts().splits, 10U);
    EXPECT_GT(table.counts().merges, 10U);
    EXPECT_GT(table.counts().node_splits, 10U);
    EXPECT_GT(table.counts().node_merges, 10U);
    for (std::uint32_t page = 0; begin == 0 && page < kPages; ++page) {
      ASSERT_EQ(flat.find(page), oracle.at(page)) << page;
    }
    table.unmap(begin, kPages);
    EXPECT_EQ(table.entries(), 0U);
    EXPECT_EQ(table.height(), 1U);
  }
}

TEST(RangeMtt, CountsWhatAChangeDoes) {
  RangeMtt table;
  table.map({10, 10, 100});
  table.map({20, 5, 110});  // goes on where the first ends
  EXPECT_EQ(table.entries(), 1U);
  EXPECT_EQ(table.counts().merges, 1U);
  table.unmap(12, 3);
  EXPECT_EQ(table.counts().splits, 1U);
  EXPECT_EQ(table.find(11).entry, (RangeEntry{10, 2, 100}));
  EXPECT_EQ(table.find(12).entry, std::nullopt);
  EXPECT_EQ(table.find(15).entry, (RangeEntry{15, 10, 105}));
  table.map({12, 3, 102});  // what was there before: one entry again
  EXPECT_EQ(table.entries(), 1U);
  EXPECT_EQ(table.counts().merges, 3U);
  EXPECT_EQ(table.pages(), 15U);
  expect_counted(table);
}

TEST(RangeMtt, ALookUpVisitsALogarithmOfTheEntries) {
  RangeMtt table;
  for (std::uint32_t i = 0; i < 100000; ++i) table.map({2 * i, 1, i});
  EXPECT_EQ(table.entries(), 100000U);
  const RangeMtt::LookUp found = table.find(2 * 77777);
  EXPECT_EQ(found.visits, table.height());
  EXPECT_LE(table.height(), 1 + std::ceil(std::log(100000) / std::log(16)));
  EXPECT_GE(table.height(), std::ceil(std::log(100000) / std::log(32)));
}

TEST(RangeMtt, NumbersHave32Bits) {
  RangeMtt table;
  table.map({0, kLastPage, 0});
  table.map({kLastPage, 1, kLastPage});  // would adjoin, but no entry is that long
  EXPECT_EQ(table.entries(), 2U);
  EXPECT_EQ(table.pages(), std::uint64_t{1} << 32);
  EXPECT_EQ(table.find(kLastPage).entry, (RangeEntry{kLastPage, 1, kLastPage}));
  EXPECT_THROW(table.map({kLastPage, 2, 0}), PlatformError);
  EXPECT_THROW(table.map({5, 0, 0}), PlatformError);
  EXPECT_THROW(FlatMtt().map({5, 0, 0}), PlatformError);
  EXPECT_EQ(table.entries(), 2U);
  table.unmap(1, std::uint64_t{1} << 40);
  EXPECT_EQ(table.pages(), 1U);
}

TEST(FlatMtt, WritesAnEntryForEachPage) {
  FlatMtt table;
  EXPECT_EQ(table.map({4, 6, 40}), 6U);
  EXPECT_EQ(table.entries(), 6U);
  EXPECT_EQ(table.find(9), 45U);
  EXPECT_EQ(table.find(3), std::nullopt);
  EXPECT_EQ(table.find(10), std::nullopt);
  EXPECT_EQ(table.unmap(8, 100), 2U);
  EXPECT_EQ(table.entries(), 4U);
}

}  // namespace
}  // namespace perdura::fabric
