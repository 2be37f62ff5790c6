// MCAS, section 3.2.1: memory is managed at a granularity by an array of region descriptors in
// persistent memory, and updates to descriptors are made write-atomic by an undo log.
#include "systems/mcas/storage/region_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::systems::mcas {
namespace {

using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

constexpr Bytes kGranuleSize = 256;
constexpr std::uint64_t kGranules = 6;
const RegionAllocator::Extent kExtent{512, kGranules, kGranuleSize};
constexpr Bytes kSize = 512 + kGranules * kGranuleSize;

std::vector<RegionDescriptor> descriptors(const RegionAllocator& allocator) {
  std::vector<RegionDescriptor> all;
  allocator.for_each([&](const RegionDescriptor& one) { all.push_back(one); });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return all;
}

TEST(RegionAllocator, ADescriptorIsOffsetLengthAndIdentifier) {
  PlainMemory memory(kSize);
  RegionAllocator allocator({memory.region(), Flushing::lines}, 0, kExtent);
  allocator.format();
  EXPECT_EQ(allocator.allocate(1, 5), (ByteRange{512, 256}));
  EXPECT_EQ(allocator.allocate(257, 6), (ByteRange{768, 512}));
  const std::vector<RegionDescriptor> expected{
      {512, 256, 5, 0}, {768, 512, 6, 0}, {1280, 768, kFree, 0}};
  EXPECT_EQ(descriptors(allocator), expected);
  EXPECT_EQ(allocator.free_bytes(), 768U);
  EXPECT_EQ(allocator.audit(), "");
}

TEST(RegionAllocator, GivesAllMemoryAndNoMore) {
  PlainMemory memory(kSize);
  RegionAllocator allocator({memory.region(), Flushing::lines}, 0, kExtent);
  allocator.format();
  EXPECT_FALSE(allocator.allocate(kGranules * kGranuleSize + 1, 1));
  for (std::uint64_t i = 0; i < kGranules; ++i)
    EXPECT_TRUE(allocator.allocate(kGranuleSize, i + 1));
  EXPECT_FALSE(allocator.allocate(1, 9));
  EXPECT_EQ(allocator.free_bytes(), 0U);
  EXPECT_EQ(allocator.audit(), "");
}

// In every image that a failure may leave after any step, also in one of its own recovery.
TEST(RegionAllocator, AFailureLeavesAllDescriptorsAsBeforeOrAsAfter) {
  const pmem::PersistenceModel model{pmem::PersistenceDomain::dmp, false};
  std::uint64_t images = 0;
  std::uint64_t undone = 0;
  ExploredRegion live(Image(kSize), model);
  RegionAllocator allocator({live.region, Flushing::lines}, 0, kExtent);
  allocator.format();
  live.memory->settle();
  for (std::uint64_t pool = 1; pool <= 3; ++pool) {
    const auto before = descriptors(allocator);
    auto after = before;
    RegionDescriptor& last = after.back();
    if (pool < 3) {
      after.insert(after.end() - 1, {last.offset, 2 * kGranuleSize, pool, 0});
      after.back().offset += 2 * kGranuleSize;
      after.back().length -= 2 * kGranuleSize;
    } else {
      last.identifier = pool;
    }
    const auto check = [&](const Image& image) {
      PlainMemory found(image);
      RegionAllocator recovered({found.region(), Flushing::lines}, 0, kExtent);
      recovered.recover();
      const auto there = descriptors(recovered);
      EXPECT_TRUE(there == before || there == after) << live.memory->step_text();
      EXPECT_EQ(recovered.audit(), "") << live.memory->step_text();
    };
    live.memory->after_step = [&] {
      live.memory->for_each_image([&](const Image& image) {
        ++images;
        check(image);
        ExploredRegion again(image, model);
        again.memory->after_step = [&] {
          again.memory->for_each_image([&](const Image& interrupted) { check(interrupted); });
        };
        RegionAllocator recovering({again.region, Flushing::lines}, 0, kExtent);
        undone += recovering.recover() ? 1 : 0;
      });
    };
    EXPECT_TRUE(allocator.allocate(2 * kGranuleSize, pool));
    live.memory->after_step = nullptr;
    EXPECT_EQ(descriptors(allocator), after);
  }
  EXPECT_GT(images, 100U);
  EXPECT_GT(undone, 20U);
}

}  // namespace
}  // namespace perdura::systems::mcas
