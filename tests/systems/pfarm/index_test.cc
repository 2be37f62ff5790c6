// The layout of a P-FaRM-KV table, its movements, chains and resizes, its writes as the paper's
// Table I has them, and what all hash indexes have in common.
#include <random>
#include <set>

#include "tests/systems/bucket_hash/index_suite.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::test {

INSTANTIATE_TYPED_TEST_SUITE_P(PFarm, HashIndex, systems::pfarm::test::PFarmHash);

}  // namespace perdura::test

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::writes_of;

TEST(PFarmLayout, TablesAndTheirPartsDoNotOverlap) {
  for (const Geometry& geometry : PFarmHash::geometries()) {
    SCOPED_TRACE(PFarmHash::describe(geometry));
    perdura::test::UsedBytes used(geometry.size());
    used.use(kStateOffset, kWord);
    for (std::uint32_t worker = 0; worker < geometry.logs; ++worker) {
      used.use(geometry.log_offset(worker), kCacheLine);
      used.use(geometry.log_offset(worker) + kCacheLine, sizeof(Record));
    }
    for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
      const Table table = geometry.table(level);
      std::set<std::uint64_t> blocks;
      for (Link link = 1; link <= table.blocks; ++link) {
        ASSERT_TRUE(blocks.insert(table.block(link).value()).second);
      }
      for (std::uint64_t bucket = 0; bucket < table.all_buckets(); ++bucket) {
        EXPECT_EQ(blocks.contains(bucket), bucket > table.homes);
        const Bytes offset = table.bucket_offset(bucket);
        EXPECT_TRUE(table.has_bucket_at(offset));
        EXPECT_FALSE(table.has_bucket_at(offset + kCacheLine));
        for (const Bytes word : {kHeaderOffset, kCheckOffset, kLinkOffset}) {
          used.use(offset + word, kWord);
        }
        for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
          used.use(offset + slot_offset(slot), kSlotSize);
        }
      }
      EXPECT_FALSE(table.has_bucket_at(table.bucket_offset(table.all_buckets())));
      if (level == 0) continue;
      // A resize brings the items of a home together.
      const Table before = geometry.table(level - 1);
      for (std::uint64_t number = 0; number < 100; ++number) {
        const Slot key = item_of(numbered_key(number));
        ASSERT_LT(table.home(key), table.homes);
        EXPECT_EQ(table.home(key) / 2, before.home(key));
      }
    }
  }
}

TEST(PFarmLayout, TheNumbersOfAHeaderDoNotTouchEachOther) {
  EXPECT_EQ(kOccupied ^ kSealed ^ kVersion.mask() ^ kJointBefore.mask() ^ kJointBehind.mask(),
            ~Header{0});
  for (const Counter& counter : {kVersion, kJointBefore, kJointBehind}) {
    for (const Header others : {Header{0}, ~counter.mask()}) {
      Header header = others;
      for (std::uint64_t i = 0; i < 10; ++i) {
        EXPECT_EQ(counter.of(header), i);
        header = counter.incremented(header);
        EXPECT_EQ(header & ~counter.mask(), others);
      }
      EXPECT_EQ(counter.incremented(others | counter.mask()), others) << "begins again";
    }
  }
}

// A full neighborhood gets room by one movement, of an item that has its other bucket free: to the
// bucket before, or to the one behind, at both ends of the table and in the middle.
TEST(PFarm, OneMovementMakesRoom) {
  constexpr std::uint64_t kHomes = 5;
  std::uint64_t before = 0;
  std::uint64_t behind = 0;
  for (std::uint64_t home = 0; home < kHomes; ++home) {
    for (const bool to_before : {false, true}) {
      if (to_before ? home == 0 : home + 1 == kHomes) continue;
      const Geometry geometry{kHomes, 0, 0};
      PlainMemory memory(geometry.size());
      Index index(memory.region(), 0, geometry);
      KeysOf keys(index.table());
      Contents model;
      const auto put = [&](std::uint64_t of) {
        const std::string key = keys.next(of);
        ASSERT_TRUE(index.put(item_of(key, "value")));
        model[key] = "value";
      };
      const std::uint64_t other = to_before ? home - 1 : home + 1;
      if (to_before) {
        // Four of the home before fill it, one more comes into the home bucket.
        std::vector<std::string> first;
        for (int i = 0; i < 4; ++i) first.push_back(keys.next(other));
        for (const std::string& key : first) ASSERT_TRUE(index.put(item_of(key, "value")));
        put(other);
        ASSERT_TRUE(index.erase(item_of(first[0])));
        for (int i = 1; i < 4; ++i) model[first[static_cast<std::size_t>(i)]] = "value";
        for (int i = 0; i < 7; ++i) put(home);
      } else {
        put(other);
        for (int i = 0; i < 7; ++i) put(home);
      }
      ASSERT_EQ(index.movements(), 0U);
      put(home);
      EXPECT_EQ(index.movements(), 1U);
      ++(to_before ? before : behind);
      EXPECT_EQ(contents_of(index), model);
      for (const auto& [key, value] : model) {
        const ClientRead read = read_as_client(memory.bytes(), geometry, 0, key);
        EXPECT_FALSE(read.torn);
        EXPECT_EQ(read.reads, 1U);
        EXPECT_EQ(read.value, value);
      }
    }
  }
  EXPECT_EQ(before, kHomes - 1);
  EXPECT_EQ(behind, kHomes - 1);
}

// Twenty-five items of one home are too many, whatever room others have; each block is one READ.
TEST(PFarm, AChainHasFourBlocks) {
  const Geometry geometry{8, 100, 0};
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  KeysOf keys(index.table());
  std::vector<std::string> all;
  for (std::size_t i = 0; i < 6 * kBucketSlots; ++i) {
    all.push_back(keys.next(3));
    ASSERT_TRUE(index.put(item_of(all.back(), "value")));
    EXPECT_EQ(index.blocks_used(), i < 8 ? 0 : i / kBucketSlots - 1);
  }
  EXPECT_EQ(index.put(item_of(keys.next(3))).error(), kv::Error::out_of_space);
  ASSERT_TRUE(index.erase(item_of(all[9])));
  all[9] = keys.next(3);
  ASSERT_TRUE(index.put(item_of(all[9], "value")));
  EXPECT_EQ(index.blocks_used(), kMaxChain);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ClientRead read = read_as_client(memory.bytes(), geometry, 0, all[i]);
    EXPECT_EQ(read.value, "value");
    EXPECT_EQ(read.reads, i < 8 ? 1 : i / kBucketSlots);
  }
}

// Items of a full table may go to any of their two homes in the next one, and the more of them go
// to few, the more room they need there.
TEST(PFarm, AResizeFindsRoomHoweverItemsAreSpread) {
  std::uint64_t fullest = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Geometry geometry{1 + random() % 6, random() % 2 == 0 ? 0U : 100U, 1};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    const Table next = geometry.table(1);
    KeysOf keys(next);
    Contents model;
    // Of each pair of homes in the next table one is the likelier, always or mostly.
    const std::uint64_t likelier = random();
    const std::uint64_t unlikely = 1 + random() % 4;
    for (int refused = 0; refused < 20;) {
      const std::uint64_t old = random() % geometry.homes;
      const bool odd = (likelier >> old & 1U) != (random() % (2 * unlikely) == 1 ? 1U : 0U);
      const std::string key = keys.next(2 * old + (odd ? 1 : 0));
      if (index.try_put(item_of(key, "value")) == Index::Outcome::done) {
        model[key] = "value";
      } else {
        ++refused;
      }
    }
    fullest += index.items() == index.table().all_buckets() * kBucketSlots ? 1 : 0;
    index.begin_resize();
    while (index.resize_step()) {
    }
    ASSERT_EQ(index.level(), 1U);
    ASSERT_EQ(contents_of(index), model);
  }
  EXPECT_GT(fullest, 100U);
}

// --- reads of two moments ------------------------------------------------------------------------

enum class Joint : std::uint8_t { versions, nothing };

// As if movements did not increment the joint versions.
void unjoin(Image& image, const Table& table) {
  for (std::uint64_t bucket = 0; bucket < table.all_buckets(); ++bucket) {
    const Bytes at = table.bucket_offset(bucket);
    const auto change = [&](Bytes offset, const auto& how) {
      std::uint64_t word;
      std::memcpy(&word, &image[at + offset], kWord);
      const std::uint64_t before = word;
      word = how(word);
      std::memcpy(&image[at + offset], &word, kWord);
      return check_term(before, 0) ^ check_term(word, 0);
    };
    const std::uint64_t terms = change(kHeaderOffset, [](Header header) {
      return header & ~kJointBefore.mask() & ~kJointBehind.mask();
    });
    change(kCheckOffset, [terms](std::uint64_t check) { return check ^ terms; });
  }
}

struct Mixed {
  std::uint64_t torn = 0;
  std::uint64_t wrong = 0;
  std::uint64_t movements = 0;
};

// Any word of what a client reads may be from an earlier or a later moment, in one or the other
// bucket: it reads again, or finds what was there at one of the moments from the one to the other.
Mixed read_mixed(std::uint64_t seed, bool whole_buckets, Joint joint) {
  const Geometry geometry{3, 0, 0};
  const Table table = geometry.table(0);
  PlainMemory memory(geometry.size());
  Index index(memory.region(), 0, geometry);
  std::mt19937_64 random(seed);
  std::vector<Image> moments;
  std::vector<Contents> contents;
  Contents model;
  Mixed mixed;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::string key = numbered_key(random() % 22);
    if (random() % 4 == 0) {
      if (index.erase(item_of(key))) model.erase(key);
    } else if (index.put(item_of(key, numbered_value(i)))) {
      model[key] = numbered_value(i);
    }
    moments.push_back(perdura::test::image_of(memory));
    if (joint == Joint::nothing) unjoin(moments.back(), table);
    contents.push_back(model);
  }
  mixed.movements = index.movements();
  const Bytes unit = whole_buckets ? kBucketSize : kWord;
  for (std::size_t one = 0; one < moments.size(); ++one) {
    for (std::size_t other = one; other < std::min(one + 6, moments.size()); ++other) {
      for (std::uint64_t number = 0; number < 22; ++number) {
        const std::string key = numbered_key(number);
        const Bytes offset = table.bucket_offset(table.home(item_of(key)));
        Image image = moments[one];
        for (Bytes at = offset; at < offset + kNeighborhoodSize; at += unit) {
          if (random() % 2 == 0) std::memcpy(&image[at], &moments[other][at], unit);
        }
        const ClientRead read = read_as_client(image, geometry, 0, key);
        if (read.torn) {
          ++mixed.torn;
          continue;
        }
        bool right = false;
        for (std::size_t moment = one; moment <= other; ++moment) {
          right |= read.value == value_in(contents[moment], key);
        }
        mixed.wrong += right ? 0 : 1;
      }
    }
  }
  return mixed;
}

Mixed read_mixed(Joint joint) {
  Mixed sum;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Mixed mixed = read_mixed(seed, seed % 2 == 0, joint);
    sum.torn += mixed.torn;
    sum.wrong += mixed.wrong;
    sum.movements += mixed.movements;
  }
  return sum;
}

TEST(PFarm, AReadOfTwoMomentsOfAnyKeyIsNoticed) {
  const Mixed right = read_mixed(Joint::versions);
  EXPECT_EQ(right.wrong, 0U);
  EXPECT_GT(right.torn, 1000U);
  EXPECT_GT(right.movements, 100U);
  EXPECT_GT(read_mixed(Joint::nothing).wrong, 0U) << "the test would not notice";
}

// --- what it costs -------------------------------------------------------------------------------

// Table I: the number of PM writes, counted as flush instructions. A movement adds six, the link to
// an overflow block one.
TEST(PFarmTable1, FlushesOfInsertUpdateAndDelete) {
  for (const std::uint32_t percent : {0U, 50U}) {
    const Geometry geometry{64, percent, 0};
    PlainMemory memory(geometry.size());
    Index index(memory.region(), 0, geometry);
    std::map<std::uint64_t, std::uint64_t> inserts;
    std::uint64_t items = 0;
    for (bool full = false; !full;) {
      const std::uint64_t movements = index.movements();
      const std::uint64_t blocks = index.blocks_used();
      const auto writes =
          writes_of([&] { full = !index.put(item_of(numbered_key(items), "0123456789abcde")); });
      const std::uint64_t moved = index.movements() - movements;
      ASSERT_LE(moved, 1U);
      const std::uint64_t linked = index.blocks_used() - blocks;
      EXPECT_EQ(writes.flushes, full ? 0U : 5U + 6 * moved + linked);
      EXPECT_EQ(writes.fences, full ? 0U : 4U + 4 * moved + linked);
      if (full) break;
      ++inserts[writes.flushes];
      ++items;
    }
    EXPECT_GT(inserts[5], items * 8 / 10);
    EXPECT_GT(inserts[11], 0U);
    EXPECT_EQ(inserts[6] > 0, percent > 0);
    for (std::uint64_t i = 0; i < items; ++i) {
      const auto writes =
          writes_of([&] { EXPECT_TRUE(index.put(item_of(numbered_key(i), "other"))); });
      EXPECT_EQ(writes.flushes, 5U);
      EXPECT_EQ(writes.fences, 4U);
    }
    for (std::uint64_t i = 0; i < items; ++i) {
      const auto writes = writes_of([&] { EXPECT_TRUE(index.erase(item_of(numbered_key(i)))); });
      EXPECT_EQ(writes.flushes, 5U);
      EXPECT_EQ(writes.fences, 4U);
    }
  }
}

// What overflow blocks are there for: without them nine items of one home are a resize.
TEST(PFarmLoadFactor, OverflowBlocksRaiseIt) {
  std::map<std::uint32_t, double> lowest;
  for (const std::uint32_t percent : {0U, 1U, 5U, 10U}) {
    lowest[percent] = perdura::test::loads_before_resizes<PFarmHash>({20, percent, 9}).back();
  }
  EXPECT_LT(lowest[0], 0.45);
  EXPECT_GT(lowest[5], lowest[0] + 0.2);
  EXPECT_GT(lowest[10], lowest[5]);
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
