// A steady state allocates nothing: neither the engine, nor the simulated threads, nor the fabric,
// nor the memory with its past. Any other allocation may be refused. In a program of its own, since
// it replaces operator new.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>

#include "platform/sim/sim_platform.h"
#include "tests/support/count_allocations.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using perdura::test::allocations;

constexpr std::uint32_t kMessage = 200;
constexpr std::uint32_t kBuffers = 8;

struct Side {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;

  Side(Thread& thread, pmem::Medium medium)
      : region(thread.node.create_region("memory", 64 * KiB, medium)),
        memory(thread.endpoint.register_memory(*region, Access::remote_all)),
        receives(thread.endpoint.create_receive_queue(kBuffers)) {
    for (std::uint64_t id = 0; id < kBuffers; ++id) post(id);
  }
  void post(std::uint64_t id) { receives->post(memory.local(32 * KiB + id * KiB, kMessage), id); }
  fabric::QueuePairOptions options() {
    return {.receive_queue = receives.get(), .completions = &completions};
  }
};

// Everything that a system does again and again, of several sizes.
Task<> round(Side& side, fabric::RemoteAddress there, std::uint32_t number) {
  co_await sleep_for(Nanoseconds(number % 7 * 100));
  co_await yield();
  const std::uint32_t size = 8 + number % 5 * 256;
  EXPECT_TRUE(co_await side.peer->read(side.memory.local(0, size), there));
  EXPECT_TRUE(co_await side.peer->write(side.memory.local(0, size), there));
  EXPECT_EQ((co_await side.peer->fetch_and_add(there, 1)).status, fabric::Status::success);
  auto first = side.peer->read(side.memory.local(0, 64), there);
  auto second = side.peer->read(side.memory.local(4096, 512), there + 4096);
  first.post();
  second.post();
  EXPECT_TRUE(co_await second);
  EXPECT_TRUE(co_await first);
  EXPECT_TRUE(co_await side.peer->send(side.memory.local(0, kMessage)));
  const auto answer = co_await side.completions.next();
  EXPECT_EQ(answer.status, fabric::Status::success);
  side.post(answer.buffer_id);
}

// The same with memory in several pieces at both ends. A frame of its own: larger ones than systems
// have are not pooled.
Task<> round_in_pieces(Side& side, fabric::RemoteAddress file, std::uint32_t number) {
  const std::uint32_t size = 8 + number % 5 * 256;
  const fabric::LocalPieces pieces(side.memory.local(0, size), side.memory.local(8192, 100));
  EXPECT_TRUE(co_await side.peer->write(pieces, file));
  EXPECT_TRUE(co_await side.peer->read(pieces, file));
}

class SteadyState : public testing::TestWithParam<CompletionMode> {};

TEST_P(SteadyState, AllocatesNothing) {
#if !PERDURA_POOL_FRAMES
  GTEST_SKIP() << "frames are not pooled, so that uses after their end are found";
#endif
  Profile profile = load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  profile.translation = {.cache_entries = 8, .cache_ways = 2, .miss = Nanoseconds(500)};
  SimPlatform platform(profile, 2);
  fabric::RemoteAddress there;
  fabric::RemoteAddress file;
  platform.start_service(0, 1, GetParam(), [&](Thread& thread) -> Task<> {
    Side side(thread, pmem::Medium::pm);
    there = side.memory.remote(0);
    constexpr std::array kExtents{fabric::Extent{0, 16384, 700}, fabric::Extent{700, 20480, 800}};
    file = thread.endpoint.register_extents(*side.region, kExtents, Access::remote_all).remote(0);
    side.peer = (co_await thread.endpoint.next_connection())->accept(side.options(), {});
    for (;;) {
      const auto message = co_await side.completions.next();
      if (message.status != fabric::Status::success) co_return;
      side.region->write(8192, message.buffer.bytes());
      side.region->persist(8192, message.buffer.length);
      side.region->store(4096, message.buffer_id);
      side.region->persist(4096, kWord);
      EXPECT_TRUE(co_await side.peer->send(side.memory.local(8192, message.buffer.length)));
      side.post(message.buffer_id);
    }
  });
  std::uint64_t while_steady = ~std::uint64_t{0};
  platform.start(1, 1, GetParam(), [&](Thread& thread) -> Task<> {
    Side side(thread, pmem::Medium::dram);
    side.peer = (co_await thread.endpoint.connect({0, 1}, side.options(), {})).queue_pair;
    std::uint32_t number = 0;
    const auto rounds = [&](std::uint32_t end) -> Task<> {
      for (; number < end; ++number) {
        co_await round(side, there, number);
        co_await round_in_pieces(side, file, number);
      }
    };
    co_await rounds(500);
    const std::uint64_t before = allocations;
    co_await rounds(3000);
    while_steady = allocations - before;
  });
  const std::uint64_t before = allocations;
  platform.run();
  EXPECT_GT(allocations, before) << "allocations are not counted";
  EXPECT_EQ(while_steady, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sim, SteadyState,
                         testing::Values(CompletionMode::polling, CompletionMode::event),
                         [](const auto& mode) {
                           return mode.param == CompletionMode::polling ? "polling" : "event";
                         });

// --- refused allocations -------------------------------------------------------------------------

// Clients connect, one of them to a node where nobody listens any more, and exchange a message each
// with a server that then ends.
void connect_and_exchange() {
  constexpr NodeId kClients = 2;
  static const Profile profile = load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  SimPlatform platform(profile, 1 + kClients);
  platform.track_durability({pmem::PersistenceDomain::dmp, true});
  platform.start_service(0, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Side side(thread, pmem::Medium::pm);
    side.peer = (co_await thread.endpoint.next_connection())->accept(side.options(), {});
    const auto message = co_await side.completions.next();
    if (message.status != fabric::Status::success) co_return;
    co_await side.peer->send(side.memory.local(0, kMessage));
    (co_await thread.endpoint.next_connection())->reject({});
  });
  for (NodeId client = 1; client <= kClients; ++client) {
    platform.start(client, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      Side side(thread, pmem::Medium::dram);
      side.peer = (co_await thread.endpoint.connect({0, 1}, side.options(), {})).queue_pair;
      if (!side.peer) co_return;
      co_await side.peer->send(side.memory.local(0, kMessage));
      co_await side.completions.next();
    });
  }
  platform.run();
}

// Whichever allocation is refused, the run ends with that exception and no other way.
TEST(Refused, AnyAllocationIsAnException) {
  using perdura::test::refused_allocation;
  connect_and_exchange();  // what is pooled for good
  std::uint64_t begin = allocations;
  connect_and_exchange();
  const std::uint64_t usual = allocations - begin;
  ASSERT_GT(usual, 100U);
  for (std::uint64_t number = 1; number <= usual; ++number) {
    begin = allocations;
    refused_allocation = begin + number;
    bool was_refused = false;
    try {
      connect_and_exchange();
    } catch (const std::bad_alloc&) {
      was_refused = true;
    }
    EXPECT_TRUE(was_refused) << "allocation " << number << " of " << usual;
  }
  refused_allocation = 0;
}

}  // namespace
}  // namespace perdura::sim
