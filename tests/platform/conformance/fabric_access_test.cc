// Keys, bounds and rights: what a peer did not allow ends in a remote-access error, does nothing,
// and breaks the connection.
#include <limits>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::MemoryRegion;
using fabric::Opcode;
using fabric::RemoteAddress;
using fabric::RemoteKey;
using fabric::Status;
using fabric::WorkRequest;

namespace {

Access needed(Opcode opcode) {
  switch (opcode) {
    case Opcode::read:
      return Access::remote_read;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
      return Access::remote_atomic;
    case Opcode::flush:
      return Access::remote_flush;
    default:
      return Access::remote_write;
  }
}

// An operation of each kind that reaches remote memory, on 8 bytes.
std::vector<WorkRequest> all_operations(const Side& client, RemoteAddress at) {
  std::vector<WorkRequest> all;
  for (const Opcode opcode :
       {Opcode::read, Opcode::write, Opcode::write_with_immediate, Opcode::compare_and_swap,
        Opcode::fetch_and_add, Opcode::atomic_write, Opcode::flush}) {
    const auto can = client.thread.endpoint.capabilities();
    if (opcode == Opcode::atomic_write && !can.atomic_write) continue;
    if (opcode == Opcode::flush && !can.flush) continue;
    if (opcode == Opcode::write_with_immediate && !can.write_with_immediate) continue;
    if (needed(opcode) == Access::remote_atomic && !can.atomics) continue;
    WorkRequest request{.opcode = opcode, .remote = at, .operand = 1, .flush_length = 8};
    if (opcode == Opcode::read || opcode == Opcode::write ||
        opcode == Opcode::write_with_immediate) {
      request.local = client.local(0, 8);
    }
    all.push_back(request);
  }
  return all;
}

Access all_but(Access right) {
  return static_cast<Access>(static_cast<int>(Access::remote_all) & ~static_cast<int>(right));
}

}  // namespace

TEST_P(FabricAccess, AnOperationWithoutItsRightIsRefused) {
  constexpr int kOperations = 7;
  for (int i = 0; i < kOperations; ++i) {
    RemoteKey forbidding;
    connected(
        [&](Side& server) -> Task<> {
          server.region->store(0, 77);
          co_await server.meet();
          const auto request = all_operations(server, {});
          if (static_cast<std::size_t>(i) < request.size()) {
            const Access right = needed(request[static_cast<std::size_t>(i)].opcode);
            forbidding = server.thread.endpoint.register_memory(*server.region, all_but(right)).key;
          }
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(server.region->load(0), 77U);
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          co_await client.meet();
          const auto requests = all_operations(client, {forbidding, 0});
          if (static_cast<std::size_t>(i) < requests.size()) {
            const WorkRequest request = requests[static_cast<std::size_t>(i)];
            const auto done = co_await fabric::RdmaOperation(*client.queue_pair, request);
            EXPECT_EQ(done.status, Status::remote_access_error) << to_string(request.opcode);
          }
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, AnOperationWithItsRightAloneIsAllowed) {
  RemoteKey keys[4];
  constexpr Access kRights[] = {Access::remote_read, Access::remote_write, Access::remote_atomic,
                                Access::remote_flush};
  connected(
      [&](Side& server) -> Task<> {
        for (int i = 0; i < 4; ++i) {
          keys[i] = server.thread.endpoint.register_memory(*server.region, kRights[i]).key;
        }
        co_await server.meet();
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        for (WorkRequest request : all_operations(client, {})) {
          for (int i = 0; i < 4; ++i) {
            if (needed(request.opcode) == kRights[i]) request.remote.key = keys[i];
          }
          EXPECT_TRUE(co_await fabric::RdmaOperation(*client.queue_pair, request))
              << to_string(request.opcode);
        }
        co_await client.meet();
      });
}

TEST_P(FabricAccess, AnUnknownKeyIsRefused) {
  for (const std::uint32_t wrong : {0U, 1U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
    with_idle_server([wrong](Side& client) -> Task<> {
      const RemoteAddress nowhere{{client.there.key.value ^ wrong}, 0};
      const RemoteAddress place = wrong == 0 ? RemoteAddress{} : nowhere;
      EXPECT_EQ((co_await client.queue_pair->read(client.local(0, 8), place)).status,
                Status::remote_access_error);
    });
  }
}

TEST_P(FabricAccess, ADeregisteredKeyIsRefused) {
  connected(
      [](Side& server) -> Task<> {
        co_await server.meet();
        server.thread.endpoint.deregister_memory(server.memory);
        // The place that the key had may be given out again; the key is not.
        const MemoryRegion next =
            server.thread.endpoint.register_memory(*server.region, Access::remote_all);
        EXPECT_FALSE(next.key == server.memory.key);
        co_await server.meet();
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 8), client.there));
        co_await client.meet();
        co_await client.meet();
        // The peer's device alone can tell why; one that does not ends the connection.
        const bool told = client.thread.endpoint.capabilities().acknowledged;
        EXPECT_EQ((co_await client.queue_pair->read(client.local(0, 8), client.there)).status,
                  told ? Status::remote_access_error : Status::flushed);
        co_await client.meet();
      });
}

TEST_P(FabricAccess, TheLastByteOfARegionIsInReach) {
  with_idle_server([](Side& client) -> Task<> {
    fabric::QueuePair& peer = *client.queue_pair;
    EXPECT_TRUE(co_await peer.read(client.local(0, 1), client.there + (kMemory - 1)));
    EXPECT_TRUE(co_await peer.write(client.local(0, 64), client.there + (kMemory - 64)));
    if (client.thread.endpoint.capabilities().atomics) {
      EXPECT_TRUE(co_await peer.fetch_and_add(client.there + (kMemory - 8), 1));
    }
    EXPECT_TRUE(co_await peer.read(client.local(0, 0), client.there + kMemory));
    EXPECT_TRUE(
        co_await peer.read(client.local(0, static_cast<std::uint32_t>(kMemory)), client.there));
  });
}

TEST_P(FabricAccess, AByteBeyondTheEndIsOutOfReach) {
  constexpr Bytes kHuge = std::numeric_limits<Bytes>::max();
  struct Range {
    Bytes offset;
    std::uint32_t length;
  };
  for (const Range range : {Range{kMemory - 7, 8}, Range{kMemory, 1}, Range{kMemory + 1, 0},
                            Range{kHuge - 3, 8}, Range{kHuge, 1}}) {
    with_idle_server([range](Side& client) -> Task<> {
      EXPECT_EQ((co_await client.queue_pair->write(client.local(0, range.length),
                                                   client.there + range.offset))
                    .status,
                Status::remote_access_error)
          << range.length << " bytes at " << range.offset;
    });
  }
}

TEST_P(FabricAccess, AtomicsAndFlushesStayInTheRegionToo) {
  with_idle_server([](Side& client) -> Task<> {
    if (!client.thread.endpoint.capabilities().atomics) co_return;
    EXPECT_EQ((co_await client.queue_pair->fetch_and_add(client.there + kMemory, 1)).status,
              Status::remote_access_error);
  });
  with_idle_server([](Side& client) -> Task<> {
    if (!client.thread.endpoint.capabilities().flush) co_return;
    EXPECT_EQ((co_await client.queue_pair->flush(client.there + 8, kMemory,
                                                 fabric::Placement::global_visibility))
                  .status,
              Status::remote_access_error);
  });
}

TEST_P(FabricAccess, OffsetsCountFromTheStartOfWhatWasRegistered) {
  for (const bool beyond : {false, true}) {
    RemoteKey key;
    connected(
        [&](Side& server) -> Task<> {
          server.region->store(4096, 11);
          key = server.thread.endpoint.register_memory(*server.region, 4096, 64, Access::remote_all)
                    .key;
          co_await server.meet();
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          if (!beyond) {
            EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 64), {key, 0}));
            EXPECT_EQ(client.region->load(0), 11U);
          } else {
            // Still inside the region, but not inside what was registered of it.
            EXPECT_EQ((co_await client.queue_pair->read(client.local(0, 8), {key, 57})).status,
                      Status::remote_access_error);
          }
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, ARegistrationReachesToTheEndOfItsRegionAndNoFurther) {
  constexpr Bytes kHuge = std::numeric_limits<Bytes>::max();
  with_idle_server([](Side& client) -> Task<> {
    const auto registers = [&](Bytes offset, Bytes length) {
      try {
        client.thread.endpoint.register_memory(*client.region, offset, length, Access::remote_all);
        return true;
      } catch (const PlatformError&) {
        return false;
      }
    };
    const Bytes size = client.region->size();
    EXPECT_TRUE(registers(0, size));
    EXPECT_TRUE(registers(size - 1, 1));
    EXPECT_FALSE(registers(0, size + 1));
    EXPECT_FALSE(registers(size - 8, 9));
    EXPECT_FALSE(registers(size + 1, 1));
    EXPECT_FALSE(registers(8, kHuge));
    co_return;
  });
}

TEST_P(FabricAccess, AfterAnErrorEverythingIsFlushedAndNothingTakesEffect) {
  connected(
      [](Side& server) -> Task<> {
        co_await server.meet();
        EXPECT_EQ(server.region->load(0), 0U);
        EXPECT_EQ(server.region->load(8), 0U);
      },
      [](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        client.region->store(0, 1);
        auto bad = peer.write(client.local(0, 8), client.there + kMemory);
        auto behind = peer.write(client.local(0, 8), client.there);
        bad.post();
        behind.post();
        EXPECT_EQ((co_await bad).status, Status::remote_access_error);
        EXPECT_EQ((co_await behind).status, Status::flushed);
        EXPECT_FALSE(peer.connected());
        peer.post_unsignaled(
            {.opcode = Opcode::write, .local = client.local(0, 8), .remote = client.there + 8});
        EXPECT_EQ((co_await peer.read(client.local(0, 8), client.there)).status, Status::flushed);
        EXPECT_EQ((co_await peer.send(client.local(0, 8))).status, Status::flushed);
        co_await client.meet();
      });
}

}  // namespace perdura::conformance
