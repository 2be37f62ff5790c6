// A copy's threads, and who sends to them.
#include "systems/mojim/receiver.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <span>

#include "platform/sim/sim_platform.h"
#include "systems/mojim/parameters.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::systems::mojim {
namespace {

using services::MemoryConfig;
using services::MemoryRole;

constexpr std::uint32_t kLogSlots = 4;
constexpr Time kGiveUp = Time() + std::chrono::seconds(1);

constexpr Mode kMode{"m-sync", "M-sync", Copies::mirror, true, false};

// Sends the requests with these ids of term 1, each a sync point of its own, as long as there is
// room for them. Whether all have been sent.
Task<bool> send(Thread& thread, Sender& sender, std::uint64_t first, std::uint64_t last) {
  const auto region =
      thread.node.create_region("request", sizeof(RequestHeader) + kWord, pmem::Medium::dram);
  const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
  const fabric::LocalPieces request = memory.local(0, sizeof(RequestHeader) + kWord);
  for (std::uint64_t number = first; number <= last; ++number) {
    const RequestHeader header{.id = begin_of(1) + number, .length = kWord, .count = 1};
    region->write(0, std::as_bytes(std::span(&header, 1)));
    const bool sent = co_await sender.finish(request, header.id, true);
    if (!sent) co_return false;
  }
  co_return true;
}

// Its log is full of what waits for a request that will not come, and nobody receives into it any
// more: it has to be told by the end of its connection.
TEST(MojimReceiver, WhoWaitsForRoomIsToldOfANewPrimary) {
  sim::SimPlatform platform(sim::load_profile(perdura::test::profile_path("mojim-pmep")), 3);
  const services::MemorySystem& system = find_memory_system("m-sync");
  MemoryConfig config{.size = 64 * KiB, .completion = CompletionMode::polling};
  config.parameters = {{"connections", 2}, {"log_slots", kLogSlots}};
  const Shape shape(config, Parameters::of(config, kMode));
  std::shared_ptr<services::MemoryReplica> mirror;
  for (fabric::Port log = 0; log < 2; ++log) {
    platform.start_service(1, log, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      if (!mirror) mirror = system.open(thread, "memory", config, MemoryRole::mirror);
      const auto mine = mirror;
      co_await mine->serve(thread);
    });
  }
  std::atomic<bool> is_lost{false};
  bool is_full = false;
  platform.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Sender sender(thread, 1, 0, shape, Acknowledgment::device, is_lost);
    const auto refusal = co_await sender.connect(begin_of(1), Hello::Contents::equal);
    EXPECT_TRUE(refusal && refusal->reason == Refusal::Reason::none);
    EXPECT_TRUE(co_await send(thread, sender, 2, 1 + kLogSlots));
    is_full = true;
    EXPECT_FALSE(co_await send(thread, sender, 2 + kLogSlots, 2 + kLogSlots));
    EXPECT_LT(thread.executor.now(), kGiveUp);
  });
  platform.start(2, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!is_full) co_await sleep_for(kLook);
    co_await sleep_for(100 * kLook);  // until the copy has seen what has arrived
    Sender sender(thread, 1, 1, shape, Acknowledgment::device, is_lost);
    const auto refusal = co_await sender.connect(begin_of(2), Hello::Contents::equal);
    EXPECT_TRUE(refusal && refusal->reason == Refusal::Reason::none);
    co_await sleep_until(kGiveUp);
    is_lost = true;  // so that the first one does not wait for ever
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::systems::mojim
