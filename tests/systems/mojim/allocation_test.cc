// A sync point allocates nothing, neither on the primary nor on the mirror. In a program of its
// own, since it replaces operator new.
#include <gtest/gtest.h>

#include <memory>

#include "platform/sim/sim_platform.h"
#include "services/memory/memory.h"
#include "systems/registry/registry.h"
#include "tests/support/count_allocations.h"
#include "tests/support/platforms.h"

namespace perdura::systems::test {
namespace {

using perdura::test::allocations;
using services::MemoryConfig;
using services::MemoryRole;

constexpr Bytes kPage = 4 * KiB;

class SyncPoints : public testing::TestWithParam<pmem::PersistenceDomain> {};

// With persistence as in the paper, and with a mirror that flushes and acknowledges itself.
TEST_P(SyncPoints, AllocateNothing) {
#if !PERDURA_POOL_FRAMES
  GTEST_SKIP() << "frames are not pooled, so that uses after their end are found";
#endif
  sim::SimPlatform platform(sim::load_profile(perdura::test::profile_path("mojim-pmep")), 2);
  const services::MemorySystem& system = find_memory_system("m-sync");
  MemoryConfig config{
      .size = 64 * KiB, .completion = CompletionMode::polling, .parameters = {{"log_slots", 64}}};
  if (GetParam() == pmem::PersistenceDomain::dmp) {
    config.method = methods::choose({{{GetParam(), true}, pmem::Medium::pm}}, *system.update, {});
  }
  std::uint64_t while_steady = ~std::uint64_t{0};
  platform.start_service(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto mirror = system.open(thread, "memory", config, MemoryRole::mirror);
    co_await mirror->serve(thread);
  });
  platform.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto primary = system.open(thread, "memory", config, MemoryRole::primary);
    const auto memory = co_await primary->map(thread);
    const auto syncs = [&](int count) -> Task<> {
      for (int i = 0; i < count; ++i) {
        memory->region().store(static_cast<Bytes>(i) % 8 * kPage, 1);
        const auto synced = co_await memory->sync({static_cast<Bytes>(i) % 8 * kPage, kPage});
        EXPECT_TRUE(synced.has_value());
      }
    };
    // The buckets of the simulation's engine grow for a while, and heartbeats are looked at.
    co_await syncs(30000);
    const std::uint64_t before = allocations;
    co_await syncs(3000);
    while_steady = allocations - before;
  });
  const std::uint64_t before = allocations;
  platform.run();
  EXPECT_GT(allocations, before) << "allocations are not counted";
  EXPECT_EQ(while_steady, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sim, SyncPoints,
                         testing::Values(pmem::PersistenceDomain::wsp,
                                         pmem::PersistenceDomain::dmp),
                         [](const auto& domain) {
                           return domain.param == pmem::PersistenceDomain::wsp ? "paper"
                                                                               : "correct";
                         });

}  // namespace
}  // namespace perdura::systems::test
