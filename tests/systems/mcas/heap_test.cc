// MCAS, section 3.2.1: the reconstituting allocator.
#include "systems/mcas/storage/heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace perdura::systems::mcas {
namespace {

constexpr Bytes kFirst = 4096;

Heap heap_of(Bytes region_size, std::uint64_t regions) {
  Heap heap({kFirst, region_size});
  heap.add_area({kFirst, regions * region_size});
  return heap;
}

TEST(Heap, BucketsRepresentPowersOfTwo) {
  const Heap::Geometry geometry;
  EXPECT_EQ(geometry.slot_size(1), 32U);
  EXPECT_EQ(geometry.slot_size(64), 64U);
  EXPECT_EQ(geometry.slot_size(65), 128U);
  EXPECT_EQ(geometry.slot_size(4096), 4096U);
}

TEST(Heap, ObjectsUpTo4KiBAreAllocatedFromRegionsOf1MiB) {
  Heap heap = heap_of(kRegionSize, 4);
  for (std::uint64_t i = 0; i < MiB / (4 * KiB); ++i) {
    EXPECT_EQ(heap.allocate(4 * KiB)->offset, kFirst + i * 4 * KiB);
  }
  EXPECT_EQ(heap.regions(), 1U);
  EXPECT_EQ(heap.allocate(4 * KiB - 1)->offset, kFirst + MiB);
  EXPECT_EQ(heap.regions(), 2U);
  EXPECT_TRUE(heap.allocate(4 * KiB + 1));
  EXPECT_EQ(heap.regions(), 2U) << "a larger object has a range of its own";
}

TEST(Heap, ObjectsAreAllocatedByALinearScanOfTheBucketsRegions) {
  Heap heap = heap_of(256, 4);
  std::vector<ByteRange> ranges;
  for (int i = 0; i < 8; ++i) ranges.push_back(*heap.allocate(64));
  heap.free(ranges[6]);
  heap.free(ranges[2]);
  EXPECT_EQ(heap.allocate(50)->offset, ranges[2].offset);
  EXPECT_EQ(heap.allocate(50)->offset, ranges[6].offset);
}

TEST(Heap, ARegionGoesBackWhenAllOfItsSlotsAreFree) {
  Heap heap = heap_of(256, 1);
  std::vector<ByteRange> ranges;
  for (int i = 0; i < 4; ++i) ranges.push_back(*heap.allocate(64));
  EXPECT_FALSE(heap.allocate(32)) << "all memory is a region of another bucket";
  for (int i = 0; i < 3; ++i) heap.free(ranges[i]);
  EXPECT_FALSE(heap.allocate(32));
  EXPECT_EQ(heap.returned(), 0U);
  heap.free(ranges[3]);
  EXPECT_EQ(heap.returned(), 1U);
  EXPECT_TRUE(heap.allocate(32));
}

TEST(Heap, LargeObjectsGetTheBestFit) {
  Heap heap = heap_of(256, 16);
  const ByteRange a = *heap.allocate(1024);
  const ByteRange b = *heap.allocate(64 + 1);
  const ByteRange c = *heap.allocate(512);
  const ByteRange d = *heap.allocate(128);
  heap.free(a);
  heap.free(c);
  EXPECT_EQ(heap.allocate(500)->offset, c.offset);
  heap.free(b);
  heap.free(d);
  EXPECT_EQ(heap.used_bytes(), 512U) << "what has taken the place of c";
}

TEST(Heap, NeighboringFreeRangesAreJoined) {
  Heap heap({kFirst, 256});
  heap.add_area({kFirst, 1024});
  EXPECT_FALSE(heap.allocate(2048));
  heap.add_area({kFirst + 1024, 1024});
  const std::optional<ByteRange> all = heap.allocate(2048);
  ASSERT_TRUE(all);
  EXPECT_EQ(heap.free_bytes(), 0U);
  heap.free(*all);
  EXPECT_EQ(heap.free_bytes(), 2048U);
  EXPECT_TRUE(heap.allocate(2048));
}

// Objects never overlap, what is freed can be allocated again, and a heap to which the objects are
// told anew is the same heap.
TEST(Heap, IsReconstitutedFromTheObjectsThatAreThere) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::uint64_t refused = 0;
  for (const Bytes region_size : {Bytes{128}, Bytes{256}, Bytes{4096}, Bytes{32 * KiB}}) {
    const Bytes size = 64 * KiB;
    Heap heap = heap_of(region_size, size / region_size);
    std::map<Bytes, ByteRange> objects;
    for (int i = 0; i < 5000; ++i) {
      if (random() % 9 < (i / 500 % 2 == 0 ? 3U : 5U) && !objects.empty()) {
        auto victim = objects.lower_bound(kFirst + random() % size);
        if (victim == objects.end()) victim = objects.begin();
        heap.free(victim->second);
        objects.erase(victim);
      } else {
        const Bytes length = 1 + random() % (Bytes{1} << random() % 14);
        const std::optional<ByteRange> range = heap.allocate(length);
        refused += range ? 0 : 1;
        if (range) {
          ASSERT_EQ(range->length, length);
          ASSERT_TRUE(objects.emplace(range->offset, *range).second);
        }
      }
      if (i % 100 != 0) continue;
      std::vector<ByteRange> all;
      Heap again = heap_of(region_size, size / region_size);
      for (const auto& [offset, object] : objects) {
        all.push_back(object);
        again.take(object);
      }
      ASSERT_EQ(heap.audit(all), "");
      ASSERT_EQ(again.audit(all), "");
      ASSERT_TRUE(again == heap);
      ASSERT_EQ(again.free_bytes(), heap.free_bytes());
      ASSERT_EQ(again.regions(), heap.regions());
    }
    for (const auto& [offset, object] : objects) heap.free(object);
    EXPECT_EQ(heap.used_bytes(), 0U);
    EXPECT_TRUE(heap == heap_of(region_size, size / region_size)) << "all is free again";
  }
  EXPECT_GT(refused, 0U);
}

TEST(Heap, TakesNothingThatIsNotFree) {
  Heap heap = heap_of(256, 4);
  heap.take({kFirst + 512, 64});
  EXPECT_THROW(heap.take({kFirst + 512, 32}), std::out_of_range) << "slots of another size";
  EXPECT_THROW(heap.take({kFirst + 256, 512}), std::out_of_range) << "a region is behind it";
  EXPECT_THROW(heap.take({kFirst + 1024, 64}), std::out_of_range) << "outside of the area";
  EXPECT_THROW(heap.take({0, 64}), std::out_of_range) << "before the area";
  EXPECT_THROW(heap.take({kFirst, ~Bytes{0} - 64}), std::out_of_range) << "longer than memory";
}

TEST(Heap, AuditNamesWhatIsWrong) {
  Heap heap = heap_of(256, 4);
  const ByteRange small = *heap.allocate(64);
  const ByteRange large = *heap.allocate(128);
  EXPECT_EQ(heap.audit({small, large}), "");
  EXPECT_EQ(heap.audit({small}), "memory of the heap is neither free nor in use");
  EXPECT_EQ(heap.audit({small, small}), "two objects of the heap overlap");
  heap.free(large);
  EXPECT_EQ(heap.audit({small, large}), "the heap counts the memory of an object as free");
}

}  // namespace
}  // namespace perdura::systems::mcas
