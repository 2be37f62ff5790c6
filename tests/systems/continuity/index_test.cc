// A continuity hash table behaves like a map through any number of resizes, on the server as for
// clients that know it or one of its predecessors, and writes what the paper's Table I says.
#include <gtest/gtest.h>

#include <random>

#include "tests/systems/continuity/support.h"

namespace perdura::systems::continuity::test {
namespace {

using perdura::test::Image;
using perdura::test::PlainMemory;

const std::vector<Geometry>& geometries() {
  static const std::vector<Geometry> all = [] {
    std::vector<Geometry> list;
    for (const std::uint64_t pairs : {1U, 3U, 10U}) {
      for (std::uint32_t sbuckets = 1; sbuckets <= kMaxSBuckets; ++sbuckets) {
        for (const std::uint32_t percent : {0U, 5U, 10U, 100U}) {
          for (const std::uint32_t resizes : {0U, 1U, 4U}) {
            list.push_back({pairs, sbuckets, percent, resizes});
            if (resizes > 0 && sbuckets < kMaxSBuckets) {
              list.push_back({pairs, sbuckets, percent, resizes, kMaxSBuckets});
            }
          }
        }
      }
    }
    return list;
  }();
  return all;
}

std::string describe(const Geometry& geometry) {
  return fmt::format("{} pairs, {} SBuckets, {} after a resize, {} % added, {} resizes",
                     geometry.pairs, geometry.sbuckets, geometry.resized_sbuckets,
                     geometry.added_percent, geometry.resizes);
}

void expect_holds(Index& index, std::span<const std::byte> memory, const Contents& model,
                  std::uint64_t keys) {
  EXPECT_EQ(contents_of(index), model);
  EXPECT_EQ(index.items(), model.size());
  for (std::uint64_t number = 0; number < keys; ++number) {
    const std::string key = numbered_key(number);
    const auto expected = model.find(key);
    for (std::uint32_t known = 0; known <= index.level(); ++known) {
      const auto found = find_as_client(memory, index.geometry(), known, key);
      ASSERT_EQ(found.has_value(), expected != model.end()) << key;
      if (found) {
        ASSERT_EQ(*found, expected->second) << key;
      }
    }
  }
}

TEST(Layout, TablesAndTheirPartsDoNotOverlap) {
  for (const Geometry& geometry : geometries()) {
    SCOPED_TRACE(describe(geometry));
    std::vector<bool> used(geometry.size());
    const auto use = [&](Bytes offset, Bytes size) {
      ASSERT_LE(offset + size, used.size());
      ASSERT_EQ(offset / kCacheLine, (offset + size - 1) / kCacheLine) << "one flush is not enough";
      for (Bytes i = offset; i < offset + size; ++i) {
        ASSERT_FALSE(used[i]) << "byte " << i;
        used[i] = true;
      }
    };
    use(kStateOffset, kWord);
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      std::uint64_t next_group = 0;
      for (std::uint64_t pair = 0; pair < table.pairs; ++pair) {
        use(table.header_offset(pair), kHeaderSize);
        const bool has_group = next_group < table.groups;
        const Indicator indicator = has_group ? with_group(0, next_group) : 0;
        if (has_group) use(table.group_offset(next_group++), kHeaderSize);
        const SlotNumber slots = has_group ? table.all_slots() : table.own_slots();
        for (SlotNumber slot = 0; slot < slots; ++slot) {
          use(table.slot_offset(pair, slot, indicator), kSlotSize);
        }
        for (const bool odd : {false, true}) {
          const Bytes segment = table.segment_offset({pair, odd});
          EXPECT_EQ(segment + Table::header_in_segment(odd), table.header_offset(pair));
          for (SlotNumber i = 0; i < table.segment_slots(); ++i) {
            const SlotNumber slot = Table::first_slot(odd) + i;
            EXPECT_EQ(segment + Table::offset_in_segment(odd, slot),
                      table.slot_offset(pair, slot, 0));
          }
        }
      }
    }
  }
}

// Section II: "a 20-bit indicator for a segment pair is sufficient".
TEST(Layout, IsThatOfThePapersExample) {
  const Table table = Geometry{}.table(0);
  EXPECT_EQ(table.own_slots(), 20U);
  EXPECT_EQ(table.segment_slots(), 16U);
  EXPECT_EQ(table.segment_size() + kBucketSize, table.pair_size());
}

TEST(Layout, ABucketIsTheRemainderOfTheHash) {
  std::mt19937_64 random(1);
  for (const std::uint64_t pairs :
       {1ULL, 2ULL, 3ULL, 5ULL, 2048ULL, 2049ULL, 1'000'003ULL, (1ULL << 32) - 1, 1ULL << 40,
        (1ULL << 62) - 1, 1ULL << 62, (1ULL << 63) - 1}) {
    const std::uint64_t buckets = 2 * pairs;
    const Divisor divisor(buckets);
    const auto expect_rest = [&](std::uint64_t hash) {
      ASSERT_EQ(divisor.rest_of(hash), hash % buckets) << hash << " by " << buckets;
    };
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t multiple = random() / buckets * buckets;
      for (const std::uint64_t hash : {multiple - 1, multiple, multiple + 1, random()}) {
        expect_rest(hash);
      }
    }
    const std::uint64_t last = ~std::uint64_t{0} / buckets * buckets;
    for (const std::uint64_t hash : {std::uint64_t{0}, last - 1, last, ~std::uint64_t{0}})
      expect_rest(hash);
  }
}

TEST(Layout, FingerprintsAreFoundInAllSlots) {
  constexpr SlotNumber kSlots = kFingerprintWords * kWord;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    // Values close to each other, so that many are equal or differ in one bit.
    std::array<std::uint64_t, kSlots> values;
    for (auto& value : values) value = random() % 4 * (i % 2 == 0 ? 1 : 85);
    const Fingerprint wanted = static_cast<Fingerprint>(values[random() % kSlots]);
    Header header{};
    for (SlotNumber slot = 0; slot < kSlots; ++slot) {
      std::uint64_t& word = header[kFingerprintsOffset / kWord + slot / kWord];
      word = with_fingerprint(word, slot, static_cast<Fingerprint>(values[slot]));
    }
    const Indicator found = with_this_fingerprint(header, wanted);
    for (SlotNumber slot = 0; slot < kSlots; ++slot) {
      const bool is_found = (found & bit_of(slot)) != 0;
      if (values[slot] == wanted) {
        ASSERT_TRUE(is_found) << slot;
      } else if (is_found) {
        ASSERT_NE(slot % kWord, 0U);
        ASSERT_EQ(values[slot] ^ wanted, 1U) << slot;
        ASSERT_TRUE(found & bit_of(slot - 1)) << slot;
      }
    }
  }
}

TEST(Continuity, BehavesLikeAMap) {
  std::uint64_t refused = 0;
  std::uint64_t grown = 0;
  std::uint64_t groups = 0;
  const std::uint64_t first_seed = std::random_device{}();
  for (std::size_t i = 0; i < geometries().size(); ++i) {
    const Geometry& geometry = geometries()[i];
    const std::uint64_t seed = first_seed + i;
    SCOPED_TRACE(fmt::format("{}, seed {}", describe(geometry), seed));
    std::mt19937_64 random(seed);
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    Contents model;
    const std::uint64_t keys = 20 + random() % (geometry.pairs * 60);
    for (int operation = 0; operation < 3000; ++operation) {
      const std::string key = numbered_key(random() % keys);
      const std::string value = numbered_value(random() % 1000);
      const bool known = model.contains(key);
      const auto found = index.find(item_of(key));
      ASSERT_EQ(found.has_value(), known);
      if (found) {
        ASSERT_EQ(as_text(found->value_bytes()), model[key]);
      }
      if (random() % 4 == 0) {
        ASSERT_EQ(index.erase(item_of(key)).has_value(), known);
        model.erase(key);
        continue;
      }
      const std::uint32_t level = index.level();
      const Result<void> put = index.put(item_of(key, value));
      grown += index.level() - level;
      if (put) {
        model[key] = value;
      } else {
        ASSERT_EQ(put.error(), Error::out_of_space);
        ASSERT_EQ(index.level(), geometry.resizes);
        ++refused;
      }
    }
    groups += index.groups_used();
    expect_holds(index, memory.bytes(), model, keys);
    const std::uint32_t level = index.level();
    const std::uint64_t groups_used = index.groups_used();
    Index again(memory.region(), 0, geometry);
    again.recover();
    EXPECT_EQ(again.level(), level);
    EXPECT_EQ(again.groups_used(), groups_used);
    expect_holds(again, memory.bytes(), model, keys);
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(grown, 0U);
  EXPECT_GT(groups, 0U);
}

TEST(Continuity, ARefusedPutChangesNothing) {
  const Geometry geometry{1, 1, 0, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Image before(memory.bytes().begin(), memory.bytes().end());
    if (index.put(item_of(numbered_key(i % 20), numbered_value(i)))) continue;
    ++refused;
    ASSERT_EQ(Image(memory.bytes().begin(), memory.bytes().end()), before);
  }
  EXPECT_GT(refused, 0U);
}

// Whatever step a resize is at, a client with the old table and a server find everything.
TEST(Continuity, NothingIsMissedDuringAResize) {
  const Geometry geometry{4, 1, 50, 2};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  Contents model;
  std::uint64_t number = 0;
  for (int resize = 0; resize < 2; ++resize) {
    for (;; ++number) {
      const std::string key = numbered_key(number);
      if (index.try_put(item_of(key, numbered_value(number))) != Index::Outcome::done) break;
      model[key] = numbered_value(number);
    }
    const std::uint32_t level = index.level();
    index.begin_resize();
    do {
      for (const auto& [key, value] : model) {
        ASSERT_EQ(find_as_client(memory.bytes(), geometry, level, key), value);
        const auto found = index.find(item_of(key));
        ASSERT_TRUE(found);
        ASSERT_EQ(as_text(found->value_bytes()), value);
      }
      ASSERT_FALSE(find_as_client(memory.bytes(), geometry, level, numbered_key(number)));
    } while (index.resize_step());
    EXPECT_EQ(index.level(), level + 1);
    expect_holds(index, memory.bytes(), model, number);
  }
}

// A pair's items may all go to the same pair of the next table.
TEST(Continuity, AResizeFindsRoomHoweverItemsAreSpread) {
  for (std::uint32_t sbuckets = 1; sbuckets <= kMaxSBuckets; ++sbuckets) {
    const Geometry geometry{1, sbuckets, 100, 6};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    const Table last = geometry.table(geometry.resizes);
    Contents model;
    for (std::uint64_t number = 0;; ++number) {
      const std::string key = numbered_key(number);
      if (last.home(item_of(key)).pair != 0) continue;
      if (!index.put(item_of(key))) break;
      model[key];
    }
    EXPECT_EQ(contents_of(index), model);
    EXPECT_EQ(index.level(), geometry.resizes);
  }
}

// Any word of what a client reads may be from an earlier or a later moment: it reads again, or
// finds what was there.
TEST(Continuity, AReadOfWordsFromTwoMomentsIsNoticed) {
  const Geometry geometry{1, 1, 0, 0};
  const Table table = geometry.table(0);
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::mt19937_64 random(1);
  const std::string key = numbered_key(0);
  std::vector<Image> moments;
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(index.put(item_of(numbered_key(random() % 3), numbered_value(i))));
    if (i % 5 == 0) {
      ASSERT_TRUE(index.put(item_of(key, numbered_value(i))));
    }
    moments.emplace_back(memory.bytes().begin(), memory.bytes().end());
  }
  const Home home = table.home(item_of(key));
  const Bytes offset = table.segment_offset(home);
  const auto search = [&](const Image& image) {
    return search_segment(std::span(image).subspan(offset, table.segment_size()), table, home.odd,
                          item_of(key));
  };
  std::uint64_t torn = 0;
  for (std::size_t one = 0; one < moments.size(); ++one) {
    for (std::size_t other = one; other < moments.size(); ++other) {
      for (int mix = 0; mix < 20; ++mix) {
        Image image = moments[one];
        for (Bytes word = offset; word < offset + table.segment_size(); word += kWord) {
          if (random() % 2 == 0) std::memcpy(&image[word], &moments[other][word], kWord);
        }
        const Search found = search(image);
        if (found.torn) {
          ++torn;
          continue;
        }
        ASSERT_TRUE(found.found);
        const auto value = [&](const Search& of) { return as_text(of.found->value_bytes()); };
        const bool as_before = value(found) == value(search(moments[one]));
        const bool as_after = value(found) == value(search(moments[other]));
        ASSERT_TRUE(as_before || as_after);
      }
    }
  }
  EXPECT_GT(torn, 1000U);
}

// Table I: the number of PM writes, counted as flush instructions.
TEST(Table1, FlushesOfInsertUpdateAndDelete) {
  for (const std::uint32_t percent : {0U, 100U}) {
    const Geometry geometry{16, 3, percent, 0};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    const auto flushes_of = [](auto operation) {
      const auto& counts = pmem::thread_write_meter();
      const pmem::WriteCounts before = counts.writes().local_store;
      operation();
      pmem::WriteCounts after = counts.writes().local_store;
      after -= before;
      EXPECT_EQ(after.fences, after.flushes);
      return after.flushes;
    };
    std::uint64_t items = 0;
    bool full = false;
    while (!full) {
      const std::uint64_t flushes =
          flushes_of([&] { full = !index.put(item_of(numbered_key(items), "0123456789abcde")); });
      EXPECT_EQ(flushes, full ? 0U : 2U);
      if (!full) ++items;
    }
    EXPECT_EQ(index.groups_used() > 0, percent > 0);
    for (std::uint64_t i = 0; i < items; ++i) {
      const std::string key = numbered_key(i);
      bool updated = false;
      const std::uint64_t flushes =
          flushes_of([&] { updated = index.put(item_of(key, "other")).has_value(); });
      EXPECT_EQ(flushes, updated ? 2U : 0U);
    }
    for (std::uint64_t i = 0; i < items; ++i) {
      EXPECT_EQ(flushes_of([&] { EXPECT_TRUE(index.erase(item_of(numbered_key(i)))); }), 1U);
    }
  }
}

// Where caches are in the persistence domain, nothing is flushed.
TEST(Table1, NoFlushesIfCachesPersist) {
  const Geometry geometry{16, 3, 10, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry, Flushing::none);
  const pmem::WriteCounts before = pmem::thread_write_meter().writes().local_store;
  ASSERT_TRUE(index.put(item_of("key", "value")));
  ASSERT_TRUE(index.erase(item_of("key")));
  pmem::WriteCounts after = pmem::thread_write_meter().writes().local_store;
  after -= before;
  EXPECT_EQ(after.flushes, 0U);
  EXPECT_EQ(after.fences, 3U);
}

// Figure 10: from 80 numbered slots on, doubled each time; what the added SBuckets are there for.
TEST(LoadFactor, AddedSBucketsRaiseIt) {
  std::map<std::uint32_t, double> lowest;
  for (const std::uint32_t percent : {0U, 5U, 10U}) {
    const Geometry geometry{10, 3, percent, 9};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    double load = 1;
    for (std::uint64_t number = 0; index.level() < 9; ++number) {
      const double before = static_cast<double>(index.items()) / static_cast<double>(index.slots());
      const std::uint32_t level = index.level();
      ASSERT_TRUE(index.put(item_of(numbered_key(number), "value")));
      if (index.level() == level) continue;
      RecordProperty(fmt::format("load_{}_{}", percent, level), std::to_string(before));
      load = before;
    }
    lowest[percent] = load;
  }
  EXPECT_LT(lowest[0], 0.55);
  EXPECT_GT(lowest[5], lowest[0] + 0.1);
  EXPECT_GE(lowest[10], lowest[5] - 0.02);
}

}  // namespace
}  // namespace perdura::systems::continuity::test
