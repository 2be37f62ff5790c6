// A level hash table behaves like a map through any number of resizes, on the server as for clients
// that know it or one of its predecessors.
#include <gtest/gtest.h>

#include <random>

#include "tests/systems/level/support.h"

namespace perdura::systems::level::test {
namespace {

constexpr std::array kGeometries{Geometry{2, 0}, Geometry{2, 1},  Geometry{2, 5},    Geometry{4, 0},
                                 Geometry{6, 2}, Geometry{20, 0}, Geometry{20, 3, 3}};

std::string describe(const Geometry& geometry) {
  return fmt::format("{} buckets, {} resizes", geometry.buckets, geometry.resizes);
}

void expect_holds(Index& index, std::span<const std::byte> memory, const Contents& model,
                  std::uint64_t keys) {
  EXPECT_EQ(contents_of(index), model);
  EXPECT_EQ(index.items(), model.size());
  for (std::uint64_t number = 0; number < keys; ++number) {
    const std::string key = numbered_key(number);
    for (std::uint32_t known = 0; known <= index.bottom(); ++known) {
      ASSERT_EQ(find_as_client(memory, index.geometry(), known, key), value_in(model, key)) << key;
    }
  }
}

TEST(LevelLayout, PartsDoNotOverlapAndOneFlushIsEnoughForEach) {
  for (const Geometry& geometry : kGeometries) {
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
    for (LogNumber log = 0; log < geometry.logs; ++log) {
      use(log_position_offset(log), kWord);
      for (std::uint64_t i = 0; i < kLogEntries; ++i) {
        use(log_entry_offset(log, i), sizeof(LogEntry));
      }
    }
    for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
      const Level level = geometry.level(number);
      for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
        use(level.bucket_offset(bucket), kHeaderSize);
        for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
          use(level.bucket_offset(bucket) + slot_offset(slot), kSlotSize);
        }
      }
    }
  }
}

// "The top-level hash table has 2N buckets, the bottom level N": the candidates of a key in both
// have numbers of which one is half the other, in every pair of levels.
TEST(LevelLayout, CandidatesAreInDifferentHalvesAndDescend) {
  for (const Geometry& geometry : kGeometries) {
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

TEST(Level, BehavesLikeAMap) {
  std::uint64_t refused = 0;
  std::uint64_t grown = 0;
  std::uint64_t movements = 0;
  std::uint64_t overwritten = 0;
  const std::uint64_t first_seed = std::random_device{}();
  for (std::size_t i = 0; i < 4 * kGeometries.size(); ++i) {
    const Geometry& geometry = kGeometries[i % kGeometries.size()];
    const std::uint64_t seed = first_seed + i;
    SCOPED_TRACE(fmt::format("{}, seed {}", describe(geometry), seed));
    std::mt19937_64 random(seed);
    PlainMemory memory(geometry.size());
    CountingIndex index(memory.region(), 0, geometry);
    Contents model;
    const std::uint64_t keys = 12 * geometry.buckets + random() % (geometry.buckets * 30);
    for (int operation = 0; operation < 4000; ++operation) {
      const std::string key = numbered_key(random() % keys);
      const std::string value = numbered_value(random() % 1000);
      const bool known = model.contains(key);
      const auto found = index.find(item_of(key));
      ASSERT_EQ(found.has_value(), known);
      if (found) {
        ASSERT_EQ(as_text(found->value_bytes()), model[key]);
      }
      if (random() % 6 == 0) {
        ASSERT_EQ(index.erase(item_of(key)).has_value(), known);
        model.erase(key);
        continue;
      }
      const std::uint32_t bottom = index.bottom();
      const Result<void> put = index.put(item_of(key, value));
      grown += index.bottom() - bottom;
      if (put) {
        model[key] = value;
      } else {
        ASSERT_EQ(put.error(), Error::out_of_space);
        ASSERT_EQ(index.bottom(), geometry.resizes);
        ASSERT_FALSE(known) << "an update never needs room";
        ++refused;
      }
    }
    movements += index.movements;
    overwritten += index.overwritten;
    expect_holds(index, memory.bytes(), model, keys);
    const std::uint32_t bottom = index.bottom();
    Index again(memory.region(), 0, geometry);
    again.recover();
    EXPECT_EQ(again.bottom(), bottom);
    expect_holds(again, memory.bytes(), model, keys);
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(grown, 0U);
  EXPECT_GT(movements, 0U);
  EXPECT_GT(overwritten, 0U);
}

TEST(Level, ARefusedPutChangesNothing) {
  const Geometry geometry{2, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const Image before(memory.bytes().begin(), memory.bytes().end());
    if (index.put(item_of(numbered_key(i % 40), numbered_value(i)))) continue;
    ++refused;
    ASSERT_EQ(Image(memory.bytes().begin(), memory.bytes().end()), before);
  }
  EXPECT_GT(refused, 0U);
}

// Another worker may hold the lock of the bucket that an item is to be moved to: then nothing has
// changed, and with that bucket among its own locks the put succeeds.
TEST(Level, AMovementIntoALockedBucketIsBegunAgainWithItsLock) {
  using bucket_hash::LockTable;
  const Geometry geometry{200, 0};
  PlainMemory alone(geometry.size());
  CountingIndex planned(alone.region(), 0, geometry);
  PlainMemory shared(geometry.size());
  CountingIndex index(shared.region(), 0, geometry);
  std::uint64_t busy = 0;
  for (std::uint64_t i = 0; busy < 3; ++i) {
    const Slot item = item_of(numbered_key(i), "value");
    const Hashes hashes = Hashes::of(item);
    planned.movements = 0;
    ASSERT_EQ(try_put(planned, item), Index::Outcome::done);
    if (planned.movements == 0) {
      ASSERT_EQ(try_put(index, item), Index::Outcome::done);
      continue;
    }
    const std::uint64_t wanted = (planned.moved_to - geometry.levels_offset()) / kBucketSize;
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
  EXPECT_EQ(index.movements, 3U);
}

// Updates of full buckets, each written to a log of its writer, of which recovery reads all.
TEST(Level, EachWriterHasItsLogUnlessThereAreMoreWritersThanLogs) {
  const Geometry geometry{2, 0, 2};
  PlainMemory memory(geometry.size());
  CountingIndex index(memory.region(), 0, geometry);
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
    const std::uint64_t overwritten = index.overwritten;
    ASSERT_EQ(index.try_put(item, Hashes::of(item), writer), Index::Outcome::done);
    ASSERT_EQ(index.overwritten, overwritten + 1) << "the bucket should be full";
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

// Any word of what a client reads may be from an earlier or a later moment: it reads again, or
// finds what was there.
TEST(Level, AReadOfWordsFromTwoMomentsIsNoticed) {
  const Geometry geometry{2, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::mt19937_64 random(1);
  const std::string key = numbered_key(0);
  const Slot wanted = item_of(key);
  const Hashes hashes = Hashes::of(wanted);
  std::vector<Image> moments;
  ASSERT_TRUE(index.put(item_of(key, "first")));
  const Level top = geometry.level(1);
  const Side side = count_items(memory.region().load(top.candidate_offset(hashes, Side::first))) > 0
                        ? Side::first
                        : Side::second;
  const Bytes offset = top.candidate_offset(hashes, side);
  const auto search = [&](const Image& image) {
    return search_bucket(std::span(image).subspan(offset, kBucketSize), wanted, hashes.tag());
  };
  // Others come and go in the same bucket; when it is full, updates overwrite.
  for (std::uint64_t i = 0; i < 80; ++i) {
    const Slot other = item_of(numbered_key(1 + random() % 20), numbered_value(i));
    if (i % 3 == 0) (void)index.erase(other);
    if (i % 3 != 0) (void)index.put(other);
    if (i % 4 == 0) {
      ASSERT_TRUE(index.put(item_of(key, numbered_value(i))));
    }
    moments.emplace_back(memory.bytes().begin(), memory.bytes().end());
    if (!search(moments.back()).found) moments.pop_back();  // it was moved
  }
  ASSERT_GT(moments.size(), 30U);
  std::uint64_t torn = 0;
  for (std::size_t one = 0; one < moments.size(); ++one) {
    for (std::size_t other = one; other < moments.size(); ++other) {
      for (int mix = 0; mix < 20; ++mix) {
        Image image = moments[one];
        for (Bytes word = offset; word < offset + kBucketSize; word += kWord) {
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

}  // namespace
}  // namespace perdura::systems::level::test
