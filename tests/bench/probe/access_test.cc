// Accesses: what the probes' numbers rest on.
#include "bench/probe/access.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/bench/probe/common.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

TEST(ProbeAccess, AChainVisitsEveryLineOnceAndReturns) {
  for (const std::string& name : perdura::test::platform_names()) {
    const auto platform = perdura::test::make_platform(name, 1);
    for (const Pattern pattern : kPatterns) {
      for (Bytes length = 4 * kCacheLine; length <= 256 * KiB; length *= 2) {
        const auto region = platform->local_node(0)->create_region("x", length, pmem::Medium::dram);
        write_chain(*region, length, pattern);
        std::set<Bytes> seen;
        Bytes at = 0;
        do {
          seen.insert(at);
          at = follow_cold_chain(*region, at, 1);
          ASSERT_EQ(at % kCacheLine, 0U);
        } while (at != 0 && seen.size() <= length / kCacheLine);
        EXPECT_EQ(seen.size(), length / kCacheLine) << name;
        EXPECT_EQ(follow_chain(*region, 0, 3), follow_cold_chain(*region, 0, 3));
      }
    }
  }
}

TEST(ProbeAccess, OffsetsCoverEverySlotOnceBeforeTheyRepeat) {
  for (const Pattern pattern : kPatterns) {
    for (Bytes size = kCacheLine; size <= 4 * KiB; size *= 2) {
      Offsets offsets(pattern, 64 * KiB, size, 5);
      std::set<Bytes> seen;
      for (Bytes i = 0; i < 64 * KiB / size; ++i) seen.insert(offsets.next());
      EXPECT_EQ(seen.size(), 64 * KiB / size);
      EXPECT_EQ(*seen.rbegin(), 64 * KiB - size);
    }
  }
}

TEST(ProbeAccess, ARandomOrderIsNotThatOfAddresses) {
  Offsets offsets(Pattern::random, MiB, kCacheLine);
  int neighbors = 0;
  Bytes last = offsets.next();
  for (int i = 0; i < 10'000; ++i) {
    const Bytes next = offsets.next();
    const Bytes distance = next > last ? next - last : last - next;
    neighbors += distance < 4 * KiB ? 1 : 0;
    last = next;
  }
  EXPECT_LT(neighbors, 200);  // by chance 78
}

TEST(ProbeAccess, EveryWayOfWritingWritesAllBytesAndNoOthers) {
  for (const std::string& name : perdura::test::platform_names()) {
    for (const Access access : {Access::ntstore, Access::store, Access::store_clwb}) {
      for (const Bytes size : {Bytes{64}, Bytes{256}, 16 * KiB, 32 * KiB}) {
        const auto platform = perdura::test::make_platform(name, 1);
        const auto region =
            platform->local_node(0)->create_region("x", 128 * KiB, pmem::Medium::pm);
        std::memset(region->data(), 0xEE, region->size());
        access_memory(*region, access, size, size);
        const std::byte* const data = region->data();
        EXPECT_NE(data[size], std::byte{0xEE});
        EXPECT_EQ(data[size - 1], std::byte{0xEE});
        EXPECT_EQ(data[2 * size], std::byte{0xEE});
        // Non-temporal stores are all alike.
        const bool alike = access == Access::ntstore;
        for (Bytes i = 0; i < size; ++i) {
          const Bytes at = i % (16 * KiB);
          ASSERT_EQ(data[size + i], alike ? data[size] : static_cast<std::byte>(at * 37 + at / 256))
              << name << ' ' << to_string(access) << ' ' << i;
        }
      }
    }
  }
}

TEST(ProbeAccess, AScanOfRealMemorySumsEveryWord) {
  const auto platform = perdura::test::make_platform("shm", 1);
  const auto region = platform->local_node(0)->create_region("x", 4 * KiB, pmem::Medium::dram);
  std::uint64_t expected = 0;
  for (Bytes at = 0; at < region->size(); at += kWord) {
    const std::uint64_t value = at * at + (at << 40);
    region->store(at, value);
    if (at >= 256 && at < 256 + 640) expected += value;
  }
  EXPECT_EQ(access_memory(*region, Access::load, 256, 640), expected);
}

}  // namespace
}  // namespace perdura::bench
