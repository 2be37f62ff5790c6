// The layout of a level hash table, its movements, logs and resizes, and what all hash indexes have
// in common.
#include <random>

#include "tests/systems/bucket_hash/index_suite.h"
#include "tests/systems/level/support.h"

namespace perdura::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Level, HashIndex, systems::level::test::LevelHash);

}  // namespace perdura::test

namespace perdura::systems::level::test {
namespace {

TEST(LevelLayout, PartsDoNotOverlapAndOneFlushIsEnoughForEach) {
  for (const Geometry& geometry : LevelHash::geometries()) {
    SCOPED_TRACE(LevelHash::describe(geometry));
    perdura::test::UsedBytes used(geometry.size());
    used.use(kStateOffset, kWord);
    for (LogNumber log = 0; log < geometry.logs; ++log) {
      used.use(log_position_offset(log), kWord);
      for (std::uint64_t i = 0; i < kLogEntries; ++i) {
        used.use(log_entry_offset(log, i), sizeof(LogEntry));
      }
    }
    for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
      const Level level = geometry.level(number);
      for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
        used.use(level.bucket_offset(bucket), kHeaderSize);
        for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
          used.use(level.bucket_offset(bucket) + slot_offset(slot), kSlotSize);
        }
      }
    }
  }
}

// "The top-level hash table has 2N buckets, the bottom level N": the candidates of a key in both
// have numbers of which one is half the other, in every pair of levels.
TEST(LevelLayout, CandidatesAreInDifferentHalvesAndDescend) {
  for (const Geometry& geometry : LevelHash::geometries()) {
    for (std::uint64_t number = 0; number < 1000; ++number) {
      const Hashes hashes = Hashes::of(item_of(numbered_key(number)));
      for (const Side side : {Side::first, Side::second}) {
        for (std::uint32_t i = 0; i < geometry.levels(); ++i) {
          const Level level = geometry.level(i);
          const std::uint64_t bucket = level.candidate(hashes, side);
          ASSERT_LT(bucket, level.buckets);
          ASSERT_EQ(level.side_of(bucket), side);
          if (i > 0) {
            ASSERT_EQ(geometry.level(i - 1).candidate(hashes, side), bucket / 2);
          }
        }
      }
    }
  }
}

TEST(LevelLayout, TokensAreSetClearedCountedAndMatchedApart) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::array<std::optional<Tag>, kBucketSlots> model{};
    const bool sealed = random() % 2 == 0;
    Tokens tokens = sealed ? kSealed : 0;
    for (int change = 0; change < 6; ++change) {
      const auto slot = static_cast<SlotNumber>(random() % kBucketSlots);
      // Few tags, and those at both ends of the range.
      const Tag tag = random() % 3 == 0 ? kTagBits - random() % 2 : random() % 2;
      model[slot] = random() % 3 == 0 ? std::nullopt : std::optional(tag);
      tokens = model[slot] ? with_item(tokens, slot, tag) : without_item(tokens, slot);
    }
    ASSERT_EQ((tokens & kSealed) != 0, sealed);
    std::uint64_t count = 0;
    std::optional<SlotNumber> first_free;
    for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
      ASSERT_EQ(is_occupied(tokens, slot), model[slot].has_value());
      count += model[slot] ? 1 : 0;
      if (!model[slot] && !first_free) first_free = slot;
    }
    ASSERT_EQ(count_items(tokens), count);
    ASSERT_EQ(free_slot(tokens), first_free);
    for (const Tag tag : {Tag{0}, Tag{1}, Tag{2}, kTagBits - 1, Tag{kTagBits}}) {
      const Tokens matches = matching(tokens, tag);
      for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
        ASSERT_EQ(is_occupied(matches, slot), model[slot] == tag);
      }
      ASSERT_EQ(matches & ~kTokenBits, 0U);
    }
  }
}

// The number of the bucket that holds more items in the second memory than in the first.
std::uint64_t bucket_that_gained(PlainMemory& before, PlainMemory& after,
                                 const Geometry& geometry) {
  std::uint64_t bucket = 0;
  const auto items_in = [&](PlainMemory& memory) {
    const Bytes offset = geometry.levels_offset() + bucket * kBucketSize;
    return count_items(memory.region().load(offset + kTokensOffset));
  };
  while (items_in(after) <= items_in(before)) ++bucket;
  return bucket;
}

// Another worker may hold the lock of the bucket that an item is to be moved to: then nothing has
// changed, and with that bucket among its own locks the put succeeds.
TEST(Level, AMovementIntoALockedBucketIsBegunAgainWithItsLock) {
  using bucket_hash::LockTable;
  const Geometry geometry{200, 0};
  PlainMemory alone(geometry.size());
  Index planned(alone.region(), 0, geometry);
  PlainMemory shared(geometry.size());
  Index index(shared.region(), 0, geometry);
  std::uint64_t busy = 0;
  for (std::uint64_t i = 0; busy < 3; ++i) {
    const Slot item = item_of(numbered_key(i), "value");
    const Hashes hashes = Hashes::of(item);
    const std::uint64_t movements = planned.movements();
    ASSERT_EQ(try_put(planned, item), Index::Outcome::done);
    if (planned.movements() == movements) {
      ASSERT_EQ(try_put(index, item), Index::Outcome::done);
      continue;
    }
    const std::uint64_t wanted = bucket_that_gained(shared, alone, geometry);
    LockTable table(2);
    Index::Writer writer;
    {
      const LockTable::Held others(table, wanted);
      LockTable::Held held(table, index.candidates(hashes));
      writer.held = &held;
      const Image before(shared.bytes().begin(), shared.bytes().end());
      ASSERT_EQ(index.try_put(item, hashes, writer), Index::Outcome::busy);
      EXPECT_EQ(writer.busy, wanted);
      EXPECT_EQ(Image(shared.bytes().begin(), shared.bytes().end()), before);
    }
    LockTable::Held held(table, index.candidates(hashes));
    ASSERT_TRUE(held.try_add(writer.busy));
    writer.held = &held;
    ASSERT_EQ(index.try_put(item, hashes, writer), Index::Outcome::done);
    ASSERT_EQ(as_text(shared.bytes()), as_text(alone.bytes()));
    ++busy;
  }
  EXPECT_EQ(index.movements(), 3U);
}

// Updates of full buckets, each written to a log of its writer, of which recovery reads all.
TEST(Level, EachWriterHasItsLogUnlessThereAreMoreWritersThanLogs) {
  const Geometry geometry{2, 0, 2};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::uint64_t stored = 0;
  while (try_put(index, item_of(numbered_key(stored))) == Index::Outcome::done) ++stored;
  const auto position = [&](LogNumber log) {
    return memory.region().load(log_position_offset(log));
  };
  const Slot item = item_of(numbered_key(0), "new");
  for (const auto& [writer_number, log] :
       {std::pair(0U, 0U), std::pair(1U, 1U), std::pair(3U, 1U)}) {
    const std::array<std::uint64_t, 2> before{position(0), position(1)};
    Index::Writer writer{.number = writer_number};
    const std::uint64_t overwritten = index.overwrites();
    ASSERT_EQ(index.try_put(item, Hashes::of(item), writer), Index::Outcome::done);
    ASSERT_EQ(index.overwrites(), overwritten + 1) << "the bucket should be full";
    EXPECT_EQ(position(log), before[log] + 1);
    EXPECT_EQ(position(1 - log), before[1 - log]);
  }
}

// Section 3.2: "only the items in the bottom level are rehashed".
TEST(Level, AResizeMovesTheBottomLevelOnly) {
  const Geometry geometry{8, 1};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  for (std::uint64_t i = 0;; ++i) {
    if (try_put(index, item_of(numbered_key(i), "value")) != Index::Outcome::done) break;
  }
  const auto items_in = [&](std::uint32_t number) {
    const Level level = geometry.level(number);
    std::uint64_t items = 0;
    for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
      items += count_items(memory.region().load(level.bucket_offset(bucket) + kTokensOffset));
    }
    return items;
  };
  const Level top = geometry.level(1);
  const auto bytes_of_top = [&] {
    const auto bytes = memory.bytes().subspan(top.offset, top.size());
    return Image(bytes.begin(), bytes.end());
  };
  const std::uint64_t in_bottom = items_in(0);
  const Image before = bytes_of_top();
  EXPECT_GT(in_bottom, 16U);
  index.begin_resize();
  while (index.resize_step()) {
  }
  EXPECT_EQ(items_in(0), 0U);
  EXPECT_EQ(items_in(2), in_bottom);
  EXPECT_EQ(bytes_of_top(), before);
}

// Keys may all have the same candidates, as far as one can arrange that.
TEST(Level, AResizeFindsRoomHoweverItemsAreSpread) {
  const Geometry geometry{2, 4};
  const Level last = geometry.level(geometry.levels() - 1);
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  Contents model;
  for (std::uint64_t number = 0;; ++number) {
    const Slot item = item_of(numbered_key(number));
    const Hashes hashes = Hashes::of(item);
    if (last.candidate(hashes, Side::first) > 1) continue;
    if (last.candidate(hashes, Side::second) > last.buckets / 2 + 1) continue;
    if (!index.put(item)) break;
    model[numbered_key(number)];
  }
  EXPECT_EQ(contents_of(index), model);
  EXPECT_EQ(index.bottom(), geometry.resizes);
  EXPECT_GE(model.size(), 16U);
}

}  // namespace
}  // namespace perdura::systems::level::test
