// The layout of a continuity hash table, its writes as the paper's Table I has them, and what all
// hash indexes have in common.
#include "tests/systems/bucket_hash/index_suite.h"
#include "tests/systems/continuity/support.h"

namespace perdura::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Continuity, HashIndex, systems::continuity::test::ContinuityHash);

}  // namespace perdura::test

namespace perdura::systems::continuity::test {
namespace {

using perdura::test::loads_before_resizes;
using perdura::test::writes_of;

TEST(ContinuityIndex, OneUpdateOfAMillionThatIsLostIsNoticed) {
  EXPECT_EQ(perdura::test::wrong_of_a_million<ContinuityHash>(777'777), 1U);
}

TEST(ContinuityLayout, TablesAndTheirPartsDoNotOverlap) {
  for (const Geometry& geometry : ContinuityHash::geometries()) {
    SCOPED_TRACE(ContinuityHash::describe(geometry));
    perdura::test::UsedBytes used(geometry.size());
    used.use(kStateOffset, kWord);
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      std::uint64_t next_group = 0;
      for (std::uint64_t pair = 0; pair < table.pairs; ++pair) {
        used.use(table.header_offset(pair), kHeaderSize);
        const bool has_group = next_group < table.groups;
        const Indicator indicator = has_group ? with_group(0, next_group) : 0;
        if (has_group) used.use(table.group_offset(next_group++), kHeaderSize);
        const SlotNumber slots = has_group ? table.all_slots() : table.own_slots();
        for (SlotNumber slot = 0; slot < slots; ++slot) {
          used.use(table.slot_offset(pair, slot, indicator), kSlotSize);
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
TEST(ContinuityLayout, IsThatOfThePapersExample) {
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

// Table I: the number of PM writes, counted as flush instructions.
// A get of an item in added SBuckets is two READs, and up to ten changes come between them. In a
// full pair they let items change places, after which the indicator is what it was.
TEST(ContinuityIndex, AGetOfTwoReadsReturnsWhatWasThereMeanwhile) {
  constexpr std::size_t kBetween = 10;
  const Geometry geometry{1, 1, 100, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  const Table table = index.table();
  struct Moment {
    std::vector<std::byte> bytes;
    std::map<std::string, std::string> values;
  };
  std::deque<Moment> moments;
  std::map<std::string, std::string> values;
  std::mt19937_64 random(14);
  std::uint64_t missed_by_the_segment = 0;
  std::uint64_t same_indicator = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::string key = numbered_key(random() % 14);
    const std::string value = numbered_value(static_cast<std::uint64_t>(step));
    if (index.put(item_of(key, value))) values[key] = value;
    moments.push_back({{memory.bytes().begin(), memory.bytes().end()}, values});
    if (moments.size() > kBetween + 1) moments.pop_front();
    const Moment& first = moments.front();
    const std::span<const std::byte> last(moments.back().bytes);
    for (const auto& [wanted, value_then] : first.values) {
      const Home home = table.home(item_of(wanted));
      const Search in_segment = search_segment(
          std::span(first.bytes).subspan(table.segment_offset(home), table.segment_size()), table,
          home.odd, item_of(wanted));
      ASSERT_FALSE(in_segment.torn);
      const auto group = group_of(in_segment.indicator);
      if (in_segment.found || !group) continue;
      ++missed_by_the_segment;
      const Search found =
          search_group(last.subspan(table.group_offset(*group), table.group_size()), table,
                       in_segment, item_of(wanted));
      Indicator now = 0;
      std::memcpy(&now, &last[table.header_offset(home.pair) + kIndicatorOffset], sizeof now);
      if (now == in_segment.indicator) ++same_indicator;
      if (found.torn) continue;
      ASSERT_TRUE(found.found) << wanted << " was not found at step " << step;
      const std::string read = as_text(found.found->value_bytes());
      EXPECT_TRUE(std::any_of(moments.begin(), moments.end(),
                              [&](const Moment& each) { return each.values.at(wanted) == read; }))
          << wanted << " at step " << step;
    }
  }
  EXPECT_GT(missed_by_the_segment, 1000U);
  EXPECT_GT(same_indicator, 0U)
      << "the test would not notice a check that is of the indicator alone";
}

TEST(ContinuityTable1, FlushesOfInsertUpdateAndDelete) {
  for (const std::uint32_t percent : {0U, 100U}) {
    const Geometry geometry{16, 3, percent, 0};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    const auto flushes_of = [](auto operation) {
      const pmem::WriteCounts writes = writes_of(operation);
      EXPECT_EQ(writes.fences, writes.flushes);
      return writes.flushes;
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

// Figure 10: from 80 numbered slots on, doubled each time; what the added SBuckets are there for.
TEST(ContinuityLoadFactor, AddedSBucketsRaiseIt) {
  std::map<std::uint32_t, double> lowest;
  for (const std::uint32_t percent : {0U, 5U, 10U}) {
    lowest[percent] = loads_before_resizes<ContinuityHash>({10, 3, percent, 9}).back();
  }
  EXPECT_LT(lowest[0], 0.55);
  EXPECT_GT(lowest[5], lowest[0] + 0.1);
  EXPECT_GE(lowest[10], lowest[5] - 0.02);
}

}  // namespace
}  // namespace perdura::systems::continuity::test
