// MCAS, section 3.2.2: the hash table.
#include "systems/mcas/hstore/table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas::hstore {
namespace {

using perdura::test::PlainMemory;

// A table with items that are their hashes: the key field is the hash.
class TableOfHashes {
 public:
  explicit TableOfHashes(const TableShape& shape, std::uint32_t segments = 12)
      : most_segments_(segments),
        memory_(sizeof(TableRoot) + shape.entries(segments) * sizeof(HstoreEntry)),
        table_({memory_.region(), Flushing::lines}, 0, shape) {
    table_.create(next_);
    next_ += table_.segment(0).length;
  }

  // False if the table would have to grow and must not.
  bool insert(std::uint64_t hash) {
    for (;;) {
      if (const std::optional<EntryNumber> entry = table_.make_room(hash)) {
        table_.insert(*entry, hash, {{hash, 0}}, 8, {{~hash, 0}}, 8, {});
        return true;
      }
      if (!grow()) return false;
    }
  }
  bool grow() {
    if (table_.segments() == most_segments_) return false;
    table_.begin_to_grow({next_, table_.entries() * sizeof(HstoreEntry)});
    while (table_.grow_step()) {
    }
    next_ += table_.segment(table_.segments() - 1).length;
    return true;
  }
  std::optional<Item> find(std::uint64_t hash) const {
    return table_.find(hash,
                       [&](const Item& item) { return memory().load(item.key_offset()) == hash; });
  }
  std::uint64_t value(const Item& item) const { return memory().load(item.value_offset()); }
  Table& table() { return table_; }
  pmem::Region& memory() const { return memory_.region(); }

 private:
  std::uint32_t most_segments_;
  mutable PlainMemory memory_;
  Bytes next_ = sizeof(TableRoot);
  Table table_;
};

TEST(HstoreTable, AnEntryFitsASingleCacheLineAndHas63Hops) {
  EXPECT_EQ(sizeof(HstoreEntry), 64U);
  EXPECT_EQ(kHops, 63U);
  EXPECT_EQ(TableShape{}.hops, 63U);
}

TEST(HstoreTable, EachAdditionalSegmentDoublesTheTable) {
  TableOfHashes hashes({.first_segment = 8, .hops = 63});
  Bytes end = sizeof(TableRoot);
  for (std::uint32_t segments = 1; segments <= 10; ++segments) {
    EXPECT_EQ(hashes.table().segments(), segments);
    EXPECT_EQ(hashes.table().entries(), std::uint64_t{8} << (segments - 1));
    end += hashes.table().segment(segments - 1).length;
    EXPECT_EQ(end - sizeof(TableRoot), hashes.table().entries() * sizeof(HstoreEntry));
    ASSERT_TRUE(hashes.grow());
  }
}

// "The high-order bit, outside of the mask, is used to indicate the segment index. The remaining
// bits are used to define the bucket/segment offset."
TEST(HstoreTable, TheHighOrderBitOutsideOfTheMaskIndicatesTheSegment) {
  TableOfHashes hashes({.first_segment = 8, .hops = 63});
  while (hashes.table().segments() < 3) ASSERT_TRUE(hashes.grow());
  const auto range_of = [&](std::uint64_t hash) {
    EXPECT_TRUE(hashes.insert(hash));
    return hashes.find(hash)->offset;
  };
  constexpr std::uint64_t kIgnored = 0xABCD00;
  EXPECT_EQ(range_of(kIgnored + 0b00101),
            hashes.table().segment(0).offset + 5 * sizeof(HstoreEntry));
  EXPECT_EQ(range_of(kIgnored + 0b01011),
            hashes.table().segment(1).offset + 3 * sizeof(HstoreEntry));
  EXPECT_EQ(range_of(kIgnored + 0b10110),
            hashes.table().segment(2).offset + 6 * sizeof(HstoreEntry));
}

TEST(HstoreTable, TheHopsOfAnEntrySayWhereItsItemsAre) {
  TableOfHashes hashes({.first_segment = 128, .hops = 63});
  for (std::uint64_t i = 0; i < 63; ++i) ASSERT_TRUE(hashes.insert(5 + (i << 7)));
  EXPECT_EQ(hashes.memory().load(hashes.table().segment(0).offset + 5 * sizeof(HstoreEntry)),
            (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(hashes.table().segments(), 1U);
  ASSERT_TRUE(hashes.insert(5 + (std::uint64_t{63} << 7)));
  EXPECT_EQ(hashes.table().segments(), 2U) << "64 items of one entry do not fit";
}

// Neighborhoods go on beyond the boundaries of segments, and at the end of the table at its
// beginning; also while the table grows.
TEST(HstoreTable, NeighborhoodsCrossTheBoundariesOfSegments) {
  for (const std::uint64_t home : {7, 15, 31}) {
    TableOfHashes hashes({.first_segment = 8, .hops = 4});
    while (hashes.table().entries() < 32) ASSERT_TRUE(hashes.grow());
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < 4; ++i) all.push_back(home + i * 32);
    for (const std::uint64_t hash : all) ASSERT_TRUE(hashes.insert(hash));
    EXPECT_EQ(hashes.table().entries(), 32U);
    for (int grown = 0; grown < 4; ++grown) {
      EXPECT_EQ(hashes.table().audit(), "");
      for (const std::uint64_t hash : all) {
        ASSERT_TRUE(hashes.find(hash)) << "hash " << hash << " after " << grown << " segments";
        EXPECT_EQ(hashes.value(*hashes.find(hash)), ~hash);
      }
      ASSERT_TRUE(hashes.grow());
    }
  }
}

TEST(HstoreTable, AnUpdateLeavesThePreviousValueInTheOtherField) {
  TableOfHashes hashes({.first_segment = 8, .hops = 4});
  ASSERT_TRUE(hashes.insert(3));
  const Item before = *hashes.find(3);
  hashes.table().update(before, {{77, 0}}, 8, {});
  const Item after = *hashes.find(3);
  EXPECT_EQ(hashes.value(after), 77U);
  EXPECT_EQ(hashes.value(before), ~std::uint64_t{3});
  EXPECT_NE(after.value_offset(), before.value_offset());
}

TEST(HstoreTable, BehavesLikeAMap) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  for (const std::uint32_t hops : {1U, 2U, 3U, 8U, 63U}) {
    std::mt19937_64 random(seed + hops);
    TableOfHashes hashes({.first_segment = 4, .hops = hops}, 9);
    std::map<std::uint64_t, std::uint64_t> expected;
    for (int i = 0; i < 4000; ++i) {
      const std::uint64_t hash = random() % 1500 * 0x9E3779B97F4A7C15;
      const std::optional<Item> found = hashes.find(hash);
      ASSERT_EQ(found.has_value(), expected.contains(hash));
      if (!found) {
        if (hashes.insert(hash)) expected[hash] = ~hash;
      } else if (random() % 3 == 0) {
        hashes.table().erase(*found, {});
        expected.erase(hash);
      } else {
        ASSERT_EQ(hashes.value(*found), expected[hash]);
        expected[hash] = random();
        hashes.table().update(*found, {{expected[hash], 0}}, 8, {});
      }
      ASSERT_EQ(hashes.table().items(), expected.size());
    }
    EXPECT_EQ(hashes.table().audit(), "") << hops << " hops";
    std::uint64_t visited = 0;
    hashes.table().for_each([&](const Item& item) {
      ++visited;
      EXPECT_EQ(hashes.value(item), expected.at(hashes.memory().load(item.key_offset())));
    });
    EXPECT_EQ(visited, expected.size());
    EXPECT_EQ(hashes.table().moves() > 0, hops > 1) << hops << " hops";
  }
}

// What growing moves keeps its distance from its home, so it cannot fail however full the table is.
TEST(HstoreTable, GrowsAtAnyLoadFactor) {
  constexpr std::uint64_t kEntries = 4096;
  TableOfHashes hashes({.first_segment = kEntries, .hops = 63}, 2);
  std::mt19937_64 random(1);
  while (hashes.table().segments() == 1) ASSERT_TRUE(hashes.insert(random()));
  const double load = static_cast<double>(hashes.table().items() - 1) / kEntries;
  EXPECT_GT(load, 0.9);
  EXPECT_EQ(hashes.table().audit(), "");
}

}  // namespace
}  // namespace perdura::systems::mcas::hstore
