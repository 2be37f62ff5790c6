// Regions that pools give back: neighbors that are free become one region, limits count, and a
// failure leaves all descriptors of a change as before or as after it (MCAS, section 3.2.1).
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "systems/mcas/storage/region_allocator.h"
#include "tests/support/seed.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas {
namespace {

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

constexpr Bytes kGranule = 256;
constexpr std::uint64_t kGranules = 8;
constexpr Bytes kFirst = 1024;
const RegionAllocator::Extent kExtent{kFirst, kGranules, kGranule};
constexpr Bytes kSize = kFirst + kGranules * kGranule;

// Offset, length and owner of each region, in order.
using Layout = std::map<Bytes, std::pair<Bytes, std::uint64_t>>;
Layout layout_of(const RegionAllocator& allocator) {
  Layout layout;
  allocator.for_each([&](const RegionDescriptor& one) {
    layout[one.offset] = {one.length, one.identifier};
  });
  return layout;
}

TEST(RegionRelease, FreeNeighborsBecomeOneRegion) {
  // Every set of eight regions of one granule that may be free, and then one more.
  for (std::uint64_t given_back = 0; given_back < 1U << kGranules; ++given_back) {
    PlainMemory memory(kSize);
    RegionAllocator allocator({memory.region(), Flushing::lines}, 0, kExtent);
    allocator.format();
    std::vector<ByteRange> ranges;
    for (std::uint64_t i = 0; i < kGranules; ++i) {
      ranges.push_back(allocator.allocate(kGranule, i + 1).value());
    }
    for (std::uint64_t i = 0; i < kGranules; ++i) {
      if ((given_back >> i & 1) != 0) allocator.release(ranges[i]);
    }
    std::uint64_t free_regions = 0;
    Bytes previous_free_end = 0;
    for (const auto& [offset, region] : layout_of(allocator)) {
      if (region.second != kFree) continue;
      ++free_regions;
      EXPECT_NE(offset, previous_free_end) << "two free regions adjoin";
      previous_free_end = offset + region.first;
    }
    EXPECT_EQ(allocator.audit(), "");
    const auto count = static_cast<std::uint64_t>(__builtin_popcountll(given_back));
    EXPECT_EQ(allocator.free_bytes(), count * kGranule);
    EXPECT_EQ(free_regions == 0, count == 0);
  }
}

TEST(RegionRelease, APoolHasNoMoreThanItsLimitAndMayHaveItAgain) {
  PlainMemory memory(kSize);
  RegionAllocator allocator({memory.region(), Flushing::lines}, 0, kExtent);
  allocator.format();
  allocator.set_limit(5, 2 * kGranule - 1);  // rounded up
  EXPECT_EQ(allocator.capacity_of(5), 2 * kGranule);
  EXPECT_FALSE(allocator.allocate(3 * kGranule, 5));
  const ByteRange first = allocator.allocate(kGranule, 5).value();
  EXPECT_TRUE(allocator.allocate(kGranule, 5));
  EXPECT_FALSE(allocator.allocate(1, 5));
  EXPECT_EQ(allocator.free_bytes_of(5), 0U);
  EXPECT_TRUE(allocator.allocate(1, 6)) << "the limit is that of one pool";
  allocator.release(first);
  EXPECT_EQ(allocator.free_bytes_of(5), kGranule);
  EXPECT_TRUE(allocator.allocate(1, 5));
  // What a pool has is known again after a restart.
  RegionAllocator recovered({memory.region(), Flushing::lines}, 0, kExtent);
  recovered.recover();
  recovered.set_limit(5, 2 * kGranule);
  EXPECT_FALSE(recovered.allocate(1, 5));
  EXPECT_EQ(recovered.regions_of(5).size(), 2U);
}

// Random histories, cut off after each step, also in recovery.
TEST(RegionRelease, AFailureLeavesARegionWithItsPoolOrFree) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const pmem::PersistenceModel model{pmem::PersistenceDomain::dmp, false};
  ExploredRegion live(Image(kSize), model);
  RegionAllocator allocator({live.region, Flushing::lines}, 0, kExtent);
  allocator.format();
  live.memory->settle();
  std::uint64_t images = 0;
  std::uint64_t undone = 0;
  std::set<Layout> found_during;
  const auto check = [&](const Image& image) {
    ++images;
    PlainMemory found(image);
    RegionAllocator recovered({found.region(), Flushing::lines}, 0, kExtent);
    undone += recovered.recover() ? 1 : 0;
    EXPECT_EQ(recovered.audit(), "") << live.memory->step_text();
    found_during.insert(layout_of(recovered));
  };
  // As many images as there are with few lines open, and some of those with many.
  const auto check_images = [&](ExploredRegion& of) {
    int tried = 0;
    for (pmem::Enumerator all; tried < 40 && all.next(); ++tried) check(of.memory->image(all));
    for (int i = 0; i < 4; ++i) {
      pmem::RandomChoices choices(random());
      check(of.memory->image(choices));
    }
  };
  std::uint64_t steps = 0;
  live.memory->after_step = [&] {
    if (testing::Test::HasFailure()) return;
    check_images(live);
    if (++steps % 4 != 0) return;
    ExploredRegion again(live.memory->visible(), model);
    again.memory->after_step = [&] { check_images(again); };
    RegionAllocator recovering({again.region, Flushing::lines}, 0, kExtent);
    recovering.recover();
  };
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    std::vector<ByteRange> owned;
    allocator.for_each([&](const RegionDescriptor& one) {
      if (one.identifier != kFree) owned.push_back(one.range());
    });
    found_during = {layout_of(allocator)};
    const Layout before = layout_of(allocator);
    if (owned.empty() || random() % 2 == 0) {
      allocator.allocate((1 + random() % 3) * kGranule, 1 + random() % 3);
    } else {
      allocator.release(owned[random() % owned.size()]);
    }
    for (const Layout& found : found_during) {
      EXPECT_TRUE(found == before || found == layout_of(allocator)) << "a change was made in part";
    }
  }
  EXPECT_GT(images, 1000U);
  EXPECT_GT(undone, 100U);
}

}  // namespace
}  // namespace perdura::systems::mcas
