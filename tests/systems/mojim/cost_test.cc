// What a sync point costs on the critical path (section 3.2.1).
#include <gtest/gtest.h>

#include <memory>

#include "platform/sim/sim_platform.h"
#include "services/memory/memory.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::systems::test {
namespace {

using services::MappedMemory;
using services::MemoryConfig;
using services::MemoryReplica;
using services::MemoryRole;

constexpr Bytes kPage = 4 * KiB;
// From then on the mirror's processor does nothing, until all is over.
constexpr Time kStandsStill = Time() + std::chrono::seconds(1);
constexpr Time kGoesOn = Time() + std::chrono::seconds(2);

const sim::Profile& pmep() {
  static const sim::Profile profile = sim::load_profile(perdura::test::profile_path("mojim-pmep"));
  return profile;
}

// How long a sync of a page takes while the mirror's processor stands still.
Picoseconds sync_of_a_page() {
  sim::SimPlatform platform(pmep(), 2);
  const services::MemorySystem& system = find_memory_system("m-sync");
  const MemoryConfig config{.size = 64 * KiB, .completion = CompletionMode::polling};
  platform.stall(1, 0, {{kStandsStill, kGoesOn}});
  Picoseconds took{};
  platform.start_service(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto mirror = system.open(thread, "memory", config, MemoryRole::mirror);
    co_await mirror->serve(thread);
  });
  platform.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto primary = system.open(thread, "memory", config, MemoryRole::primary);
    const std::unique_ptr<MappedMemory> memory = co_await primary->map(thread);
    EXPECT_LT(thread.executor.now(), kStandsStill);
    co_await sleep_until(kStandsStill + Microseconds(10));
    const Time begin = thread.executor.now();
    const auto synced = co_await memory->sync({0, kPage});
    took = thread.executor.now() - begin;
    EXPECT_TRUE(synced.has_value());
    EXPECT_LT(thread.executor.now(), kGoesOn) << "it has waited for the mirror's processor";
  });
  platform.run();
  return took;
}

struct RoundTrips {
  Picoseconds send{};  // of as many bytes, which the device of the other node acknowledges
  Picoseconds read{};  // of a word
};
RoundTrips bare_round_trips() {
  sim::SimPlatform platform(pmep(), 2);
  constexpr Bytes kMessage = kCacheLine + kPage;  // a request and its header
  RoundTrips took;
  fabric::RemoteKey key;
  platform.start_service(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("to", kMessage, pmem::Medium::pm);
    key = thread.endpoint.register_memory(*region, fabric::Access::remote_read).key;
    const auto buffers = thread.endpoint.create_receive_queue(1);
    buffers->post(fabric::LocalBuffer{region.get(), 0, kMessage}, 0);
    fabric::CompletionQueue completions;
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer =
        request->accept({.receive_queue = buffers.get(), .completions = &completions}, {});
    co_await sleep_until(kGoesOn);
  });
  platform.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("from", kMessage, pmem::Medium::pm);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    const auto made = co_await thread.endpoint.connect({1, 0}, {}, {});
    const Time begin = thread.executor.now();
    const fabric::Completion sent = co_await made.queue_pair->send(memory.local(0, kMessage));
    const Time between = thread.executor.now();
    const fabric::Completion read =
        co_await made.queue_pair->read(memory.local(0, kWord), {key, 0});
    took = {between - begin, thread.executor.now() - between};
    EXPECT_TRUE(sent);
    EXPECT_TRUE(read);
  });
  platform.run();
  return took;
}

// As published; where the mirror has to flush, its processor takes part (docs/systems/mojim.md).
TEST(MojimCost, ASyncOfAPageIsOneRoundTripAndNeedsNoProcessorOfTheMirror) {
  const Picoseconds sync = sync_of_a_page();
  const RoundTrips bare = bare_round_trips();
  EXPECT_GE(sync, bare.send);
  EXPECT_LT(sync, bare.send + bare.read / 2)
      << "the shortest second round trip takes as long as a READ of a word, "
      << to_microseconds(bare.read) << " us; a SEND takes " << to_microseconds(bare.send) << " us";
}

}  // namespace
}  // namespace perdura::systems::test
