// The state of hstore-cc's allocator: what a failure leaves of it.
#include "systems/mcas/hstore_cc/heap_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas::hstore_cc {
namespace {

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

constexpr Bytes kRegion = 32 * KiB;
constexpr ByteRange kArea{2 * kRegion, 8 * kRegion};
const Heap::Geometry kGeometry{kArea.offset, kRegion};

HeapMap map_in(pmem::Region& region) { return {{region, Flushing::lines}, 0, kGeometry}; }
Heap empty_heap() {
  Heap heap(kGeometry);
  heap.add_area(kArea);
  return heap;
}

// The heap that is read from the map is the one that has been written to it.
TEST(HeapMap, IsTheStateOfTheHeap) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  ASSERT_LE(HeapMap::size(kArea.length, kRegion), kArea.length / 256 + 2 * kCacheLine);
  PlainMemory memory(kArea.offset);
  HeapMap map = map_in(memory.region());
  map.add_pool();
  Heap heap = empty_heap();
  std::map<Bytes, ByteRange> objects;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 9 < (i / 500 % 2 == 0 ? 3U : 5U) && !objects.empty()) {
      auto victim = objects.lower_bound(kArea.offset + random() % kArea.length);
      if (victim == objects.end()) victim = objects.begin();
      map.free(victim->second);
      EXPECT_FALSE(map.is_used(victim->second));
      heap.free(victim->second);
      objects.erase(victim);
    } else if (const auto range = heap.allocate(1 + random() % (Bytes{1} << random() % 17))) {
      map.use(*range);
      objects.emplace(range->offset, *range);
    }
    if (i % 100 != 0) continue;
    Heap again = empty_heap();
    map.read(kArea, again);
    ASSERT_TRUE(again == heap);
    ASSERT_EQ(again.used_bytes(), heap.used_bytes());
    ASSERT_EQ(map.used_bytes(kArea), heap.used_bytes());
    for (const auto& [offset, object] : objects) ASSERT_TRUE(map.is_used(object));
  }
}

// Also in memory in which another pool has used everything.
TEST(HeapMap, AFailureLeavesInUseWhatWasAndAPartOfWhatBecomesSo) {
  const pmem::PersistenceModel model{pmem::PersistenceDomain::dmp, false};
  ExploredRegion live(Image(kArea.offset), model);
  HeapMap before = map_in(live.region);
  before.add_pool();
  Heap filled = empty_heap();
  while (const std::optional<ByteRange> range = filled.allocate(64)) before.use(*range);
  live.memory->settle();

  HeapMap map = map_in(live.region);
  const std::uint64_t pool = map.add_pool();
  std::vector<ByteRange> objects;
  ByteRange changing;
  std::uint64_t images = 0;
  const auto check = [&](const Image& image) {
    ++images;
    PlainMemory found(image);
    HeapMap again = map_in(found.region());
    again.open_pool(pool);
    Bytes used = again.used_bytes(kArea);
    for (const ByteRange& object : objects) {
      EXPECT_TRUE(again.is_used(object));
      used -= again.bytes_of(object);
    }
    EXPECT_LE(used, again.bytes_of(changing)) << "what nobody has used is in use";
  };
  live.memory->after_step = [&] {
    pmem::LeastChoices least;
    check(live.memory->image(least));
    for (std::uint64_t i = 0; i < 8 && !HasFailure(); ++i) {
      pmem::RandomChoices random(i);
      check(live.memory->image(random));
    }
  };
  Heap heap = empty_heap();
  const auto use = [&](Bytes length) {
    changing = heap.allocate(length).value();
    map.use(changing);
    live.region.drain();
    objects.push_back(changing);
  };
  const auto free = [&] {
    changing = objects.back();
    objects.pop_back();
    map.free(changing);
    live.region.drain();
    heap.free(changing);
    changing.length = 0;
  };
  for (const Bytes length : {32, 64, 4096, 5000, 40'000}) use(length);
  for (int i = 0; i < 3; ++i) free();
  for (const Bytes length : {20'000, 200, 700}) use(length);
  check(live.memory->visible());
  EXPECT_GT(images, 300U);
}

// The process dies while it uses an object, and the next one frees that, and uses it again.
TEST(HeapMap, WhatIsUsedAfterADeathIsDurable) {
  struct Died {};
  // The word of this region is in another line than its first bits.
  const ByteRange object{kArea.offset + 7 * kRegion, 64};
  std::uint64_t deaths = 0;
  for (bool died = true; died;) {
    const pmem::PersistenceModel model{pmem::PersistenceDomain::dmp, false};
    ExploredRegion live(Image(kArea.offset), model);
    HeapMap map = map_in(live.region);
    const std::uint64_t pool = map.add_pool();
    live.memory->after_step = [steps = deaths]() mutable {
      if (steps-- == 0) throw Died();
    };
    died = false;
    try {
      map.use(object);
    } catch (const Died&) {
      died = true;
      ++deaths;
    }
    live.memory->after_step = nullptr;
    live.memory->writer = &object;  // no fence of the next process waits for flushes of this one
    HeapMap next = map_in(live.region);
    next.open_pool(pool);
    next.free_again(object);
    next.use(object);
    live.region.drain();
    pmem::LeastChoices least;
    PlainMemory found(live.memory->image(least));
    HeapMap last = map_in(found.region());
    last.open_pool(pool);
    EXPECT_TRUE(last.is_used(object)) << "after " << deaths << " steps";
  }
  EXPECT_GT(deaths, 4U);
}

}  // namespace
}  // namespace perdura::systems::mcas::hstore_cc
