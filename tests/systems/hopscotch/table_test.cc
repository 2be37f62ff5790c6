// Hopscotch hashing as Erda and its baselines use it: what is in the table is found by one
// contiguous read, the table fills until no entry can be moved, and its writes are those of the
// paper's Table 1.
#include "systems/hopscotch/table.h"
#include "tests/systems/hopscotch/crash_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace perdura::systems::hopscotch {
namespace {

using test::as_key;

std::string numbered_key(std::uint64_t number, std::size_t length) {
  std::string key = "user" + std::to_string(number);
  key.resize(std::max(length, key.size()), '-');
  return key;
}

// A table in ordinary memory that counts as persistent.
struct PlainTable {
  explicit PlainTable(const Geometry& geometry, DisplacementCounter counter = {})
      : memory(geometry.size() / kWord),
        region("table", pmem::Medium::pm, reinterpret_cast<std::byte*>(memory.data()),
               geometry.size(), nullptr, nullptr),
        table(region, 0, geometry, counter) {}
  std::vector<std::uint64_t> memory;
  pmem::Region region;
  Table table;
};

pmem::WriteCounts stored_so_far() { return pmem::thread_write_meter().writes().local_store; }

double field_bytes_since(const pmem::WriteCounts& before) {
  return static_cast<double>(stored_so_far().field_bits - before.field_bits) / 8;
}

TEST(Geometry, HasTwoBucketsARecordAndARowMoreThanTheLastHomeNeeds) {
  for (const std::uint64_t records : {1, 10, 1000, 100000, 10000000}) {
    const Geometry geometry = Geometry::for_records(records, 16);
    EXPECT_GE(geometry.buckets, 2 * records);
    EXPECT_LE(geometry.buckets, 10 * records);
    EXPECT_EQ(geometry.entries(), geometry.buckets + 7);
    EXPECT_EQ(geometry.stride(), 32u);
  }
}

TEST(Geometry, TypicalKeysAreStoredWithoutALength) {
  const Geometry geometry{24, 8, 64};
  EXPECT_EQ(geometry.stored(as_key(std::string(24, 'k'))).format, kTypicalFormat);
  EXPECT_EQ(geometry.stored(as_key(std::string(7, 'k'))).format, 7);
  const StoredKey digest = geometry.stored(as_key(std::string(25, 'k')));
  EXPECT_EQ(digest.format, kDigestFormat);
  EXPECT_EQ(digest.bytes().size(), kDigestSize);
  EXPECT_EQ(geometry.stored({}).format, kDigestFormat);
}

TEST(Geometry, AKeyShorterThanADigestStillHasRoomForOne) {
  const Geometry geometry{8, 8, 64};
  EXPECT_EQ(geometry.slot_size(), 16u);
  EXPECT_EQ(geometry.stored(as_key(std::string(12, 'k'))).format, 12);
  EXPECT_EQ(geometry.used(kTypicalFormat), 8u);
}

TEST(Table, BehavesLikeAMap) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const Geometry geometry{16, 8, 97};
  PlainTable plain(geometry);
  Table& table = plain.table;
  std::map<std::string, std::uint64_t> model;
  std::uint64_t refused = 0;

  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t number = random() % 150;
    constexpr std::array<std::size_t, 4> kLengths = {16, 9, 16, 40};
    const std::string key = numbered_key(number, kLengths[number % 4]);
    const std::uint64_t word = random() | 1;
    const std::optional<TableEntry> found = table.find(as_key(key));
    ASSERT_EQ(found.has_value(), model.contains(key));
    if (found) {
      ASSERT_EQ(found->word, model[key]);
      ASSERT_EQ(found->tag, number % 5);
      if (random() % 2 == 0) {
        table.set_word(found->bucket, word);
        model[key] = word;
      } else {
        table.clear(found->bucket);
        model.erase(key);
      }
    } else if (table.insert(as_key(key), static_cast<std::uint8_t>(number % 5), word)) {
      model[key] = word;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u) << "the table should have been full now and then";
  std::uint64_t entries = 0;
  table.for_each([&](const TableEntry&, kv::Key) { ++entries; });
  EXPECT_EQ(entries, model.size());
  for (const auto& [key, word] : model) {
    const std::optional<TableEntry> found = table.find(as_key(key));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->word, word);
    table.clear(found->bucket);
  }
  table.for_each([](const TableEntry& entry, kv::Key) { FAIL() << "bucket " << entry.bucket; });
}

TEST(Table, KeepsAllKeysUntilItIsFull) {
  for (const std::uint32_t neighborhood : {1u, 4u, 8u, 32u}) {
    PlainTable plain({16, neighborhood, 1024});
    std::uint64_t keys = 0;
    while (plain.table.insert(as_key(numbered_key(keys, 16)), 0, keys + 1)) ++keys;
    if (neighborhood >= 8) {
      EXPECT_GT(keys, 600u) << "load at which the first insert failed";
    }
    EXPECT_FALSE(plain.table.find(as_key(numbered_key(keys, 16))));
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::optional<TableEntry> found = plain.table.find(as_key(numbered_key(i, 16)));
      ASSERT_TRUE(found) << "key " << i << " of " << keys;
      ASSERT_EQ(found->word, i + 1);
    }
  }
}

TEST(Table, RefusedInsertsChangeNothing) {
  PlainTable plain({16, 4, 64});
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::vector<std::uint64_t> before = plain.memory;
    if (!plain.table.insert(as_key(numbered_key(i, 16)), 1, 1)) {
      ASSERT_EQ(plain.memory, before);
    }
  }
}

TEST(Table, NoNeighborhoodWrapsAround) {
  const Geometry geometry{16, 8, 32};
  PlainTable plain(geometry);
  std::uint64_t in_last_home = 0;
  for (std::uint64_t i = 0; in_last_home < 8; ++i) {
    const std::string key = numbered_key(i, 16);
    const Bucket home = geometry.home(geometry.stored(as_key(key)));
    if (home != geometry.buckets - 1) continue;
    ++in_last_home;
    const kv::Result<Bucket> bucket = plain.table.insert(as_key(key), 0, 7);
    ASSERT_TRUE(bucket);
    EXPECT_GE(*bucket, home);
    EXPECT_LT(*bucket, geometry.entries());
  }
}

TEST(Table, AClientFindsAKeyInOneReadOfItsNeighborhood) {
  const Geometry geometry{16, 8, 128};
  PlainTable plain(geometry);
  for (std::uint64_t i = 0; i < 80; ++i) {
    const std::string key = numbered_key(i, 3 + i % 30);
    ASSERT_TRUE(plain.table.insert(as_key(key), 3, i + 1));
    const StoredKey stored = geometry.stored(as_key(key));
    std::vector<std::byte> fetched(geometry.neighborhood_length());
    plain.region.read(geometry.neighborhood_offset(geometry.home(stored)), fetched);
    const std::optional<NeighborhoodEntry> found = find_in(fetched, geometry, stored);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->word, i + 1);
    EXPECT_EQ(found->tag, 3);
  }
}

TEST(Table, AReservedBucketIsKeptForWhoeverReservedIt) {
  PlainTable plain({16, 8, 16});
  const std::string kept = numbered_key(1000, 16);
  const kv::Result<Bucket> bucket = plain.table.reserve(as_key(kept));
  ASSERT_TRUE(bucket);
  EXPECT_FALSE(plain.table.find(as_key(kept)));
  std::uint64_t keys = 0;
  while (plain.table.insert(as_key(numbered_key(keys, 16)), 0, keys + 1)) ++keys;
  plain.table.fill(*bucket, as_key(kept), 0, 99);
  ASSERT_TRUE(plain.table.find(as_key(kept)));
  EXPECT_EQ(plain.table.find(as_key(kept))->word, 99u);
  for (std::uint64_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(plain.table.find(as_key(numbered_key(i, 16))));
  }
}

TEST(Table, ADisplacementIsSeenByTheCounter) {
  std::uint64_t word = 0;
  pmem::Region dram("counter", pmem::Medium::dram, reinterpret_cast<std::byte*>(&word), kWord,
                    nullptr, nullptr);
  PlainTable plain({16, 4, 64}, {&dram, 0});
  std::uint64_t changes = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t before = word;
    if (!plain.table.insert(as_key(numbered_key(i, 16)), 0, 1)) break;
    EXPECT_EQ(word % 2, 0u);
    changes += (word - before) / 2;
  }
  EXPECT_GT(changes, 0u);
}

// Erda, section 5.6: a create writes "a key and an address (8 bytes)"; a delete sets them to 0.
TEST(Table1, AnEntryCostsTheSizeOfTheKeyAndItsWord) {
  for (const Bytes key_size : {8, 16, 20, 24, 60}) {
    PlainTable plain({key_size, 8, 64});
    const std::string key = numbered_key(1, key_size);
    pmem::WriteCounts before = stored_so_far();
    const kv::Result<Bucket> bucket = plain.table.insert(as_key(key), 0, 0x1234);
    ASSERT_TRUE(bucket);
    EXPECT_EQ(field_bytes_since(before), static_cast<double>(key_size + 8));
    before = stored_so_far();
    plain.table.clear(*bucket);
    EXPECT_EQ(field_bytes_since(before), static_cast<double>(key_size + 8));
  }
}

// "an object key, a head ID (1 byte), a new tag and an offset (4 bytes)".
TEST(Table1, ErdasEntryCostsTheSizeOfTheKeyAndFiveBytes) {
  constexpr pmem::WordLayout kErda{{1, 31, 31, 1}};
  PlainTable plain({16, 8, 64});
  const pmem::WriteCounts before = stored_so_far();
  ASSERT_TRUE(plain.table.insert(as_key(numbered_key(1, 16)), 5, (77ULL << 1) | 1, kErda));
  EXPECT_EQ(field_bytes_since(before), 16.0 + 1 + 4);
}

}  // namespace
}  // namespace perdura::systems::hopscotch
