// Memory that applications map: tracked by pages where memory is mapped, refused where it is
// modelled.
#include "platform/pmem/tracked_memory.h"

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using pmem::DirtyPage;
using pmem::kTrackedPage;
using pmem::Medium;
using pmem::TrackedMemory;

TEST_P(PmemAccounting, WhatAnApplicationStoresIsCountedWhenItIsSynced) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("mapped", 8 * kTrackedPage, Medium::pm);
    if (platform->modelled()) {
      EXPECT_THROW(TrackedMemory(*region, 0, kTrackedPage), UsageError);
      co_return;
    }
    TrackedMemory tracked(*region, kTrackedPage, 4 * kTrackedPage);
    const pmem::Writes before = thread.node.pm_writes();
    std::fill_n(tracked.memory().begin() + 1000, 200, std::byte{1});
    const std::vector<DirtyPage> dirty = tracked.sync(0, 4 * kTrackedPage);
    // Bytes 1000 to 1200: lines 15 to 18.
    EXPECT_EQ(dirty, (std::vector<DirtyPage>{{0, 0b1111U << 15}}));
    pmem::Writes writes = thread.node.pm_writes();
    writes -= before;
    EXPECT_EQ(writes.local_store.stores, 1U);
    EXPECT_EQ(writes.local_store.bytes_issued, 200U);
    EXPECT_EQ(writes.local_store.bytes_programmed, 200U);
    EXPECT_EQ(writes.local_store.flushes, 4U);
    EXPECT_EQ(writes.local_store.fences, 1U);
    EXPECT_EQ(contents(*region, kTrackedPage + 1000, 200),
              std::vector<std::byte>(200, std::byte{1}));
    co_return;
  });
  platform->run();
}

}  // namespace perdura::conformance
