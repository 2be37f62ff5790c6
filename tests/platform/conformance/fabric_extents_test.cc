// Operations on local memory in several pieces, and registrations that consist of extents.
#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::Extent;
using fabric::ExtentMap;
using fabric::LocalPieces;
using fabric::ReceiveCompletion;
using fabric::RemoteAddress;
using fabric::RemoteKey;
using fabric::Status;
using pmem::Medium;

namespace {

std::vector<std::byte> joined(std::initializer_list<std::vector<std::byte>> parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<std::byte> part(const std::vector<std::byte>& bytes, std::size_t from, std::size_t n) {
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(from);
  return {first, first + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace

// --- pieces ------------------------------------------------------------------------------

TEST_P(FabricOperations, AWriteGathersAndAReadScatters) {
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    for (const bool inlined : {false, true}) {
      PairOptions options;
      options.memory = medium;
      with_idle_server(options, [inlined](Side& client) -> Task<> {
        if (inlined && client.thread.endpoint.capabilities().max_inline < 155) co_return;
        client.region->write(1001, pattern(5, 1));
        client.region->write(64, pattern(50, 2));
        client.region->write(4096, pattern(100, 3));
        const LocalPieces out(client.local(1001, 5), client.local(64, 50), client.local(4096, 100));
        EXPECT_EQ(out.length(), 155U);
        EXPECT_TRUE(
            co_await client.queue_pair->write(out, client.there + 33, {.inlined = inlined}));
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(8192, 200), client.there));
        EXPECT_EQ(contents(*client.region, 8192, 200),
                  joined({std::vector<std::byte>(33), pattern(5, 1), pattern(50, 2),
                          pattern(100, 3), std::vector<std::byte>(12)}));
        // In other parts, to other places, in another order; a piece may be empty.
        const LocalPieces in(client.local(20000, 149), client.local(17000, 0),
                             client.local(16003, 6));
        EXPECT_TRUE(co_await client.queue_pair->read(in, client.there + 33));
        const auto whole = joined({pattern(5, 1), pattern(50, 2), pattern(100, 3)});
        EXPECT_EQ(contents(*client.region, 19999, 151),
                  joined({{std::byte{0}}, part(whole, 0, 149), {std::byte{0}}}));
        EXPECT_EQ(contents(*client.region, 16002, 8),
                  joined({{std::byte{0}}, part(whole, 149, 6), {std::byte{0}}}));
      });
    }
  }
}

TEST_P(FabricOperations, AnUnsignaledWriteGathersToo) {
  with_idle_server([](Side& client) -> Task<> {
    client.region->write(0, pattern(24, 1));
    client.region->write(100, pattern(8, 2));
    client.queue_pair->post_unsignaled({.opcode = fabric::Opcode::write,
                                        .local = {client.local(0, 24), client.local(100, 8)},
                                        .remote = client.there});
    EXPECT_TRUE(co_await client.queue_pair->read(client.local(512, 32), client.there));
    EXPECT_EQ(contents(*client.region, 512, 32), joined({pattern(24, 1), pattern(8, 2)}));
  });
}

TEST_P(FabricReceive, AMessageIsGatheredAndFillsThePiecesOfABufferInTurn) {
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    PairOptions options;
    options.receives_posted = 0;
    options.buffers = medium;
    options.memory = medium;
    constexpr std::uint32_t kSizes[] = {0, 3, 10, 11, 40, 60};
    connected(
        options,
        [&](Side& server) -> Task<> {
          for (const std::uint32_t size : kSizes) {
            const std::vector<std::byte> zeros(256);
            server.buffers->write(0, zeros);
            server.region->write(0, zeros);
            server.receive_queue->post({server.buffer_memory.local(100, 10), server.local(8, 30),
                                        server.buffer_memory.local(0, 20)},
                                       size);
            co_await server.meet();
            const ReceiveCompletion message = co_await server.completions.next();
            EXPECT_EQ(message.status, Status::success);
            EXPECT_EQ(message.buffer_id, size);
            EXPECT_EQ(message.length, size);
            EXPECT_EQ(message.buffer.offset, 100U);
            EXPECT_EQ(message.buffer.length, std::min(size, 10U));
            auto whole = pattern(size, size);
            whole.resize(60);
            EXPECT_EQ(contents(*server.buffers, 100, 10), part(whole, 0, 10));
            EXPECT_EQ(contents(*server.region, 8, 30), part(whole, 10, 30));
            EXPECT_EQ(contents(*server.buffers, 0, 20), part(whole, 40, 20));
            EXPECT_EQ(contents(*server.buffers, 110, 8), std::vector<std::byte>(8));
          }
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          for (const std::uint32_t size : kSizes) {
            co_await client.meet();
            client.region->write(0, pattern(size, size));
            const std::uint32_t half = size / 2;
            const LocalPieces message(client.local(0, half), client.local(half, size - half));
            EXPECT_TRUE(co_await client.queue_pair->send(message));
          }
          co_await client.meet();
        });
  }
}

TEST_P(FabricReceive, AMessageLongerThanAllPiecesIsTooLong) {
  PERDURA_NEEDS(acknowledged);
  PairOptions options;
  options.receives_posted = 0;
  connected(
      options,
      [](Side& server) -> Task<> {
        server.receive_queue->post(
            {server.buffer_memory.local(0, 16), server.buffer_memory.local(64, 16)}, 1);
        co_await server.meet();
        const ReceiveCompletion message = co_await server.completions.next();
        EXPECT_NE(message.status, Status::success);
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        co_await client.meet();
        EXPECT_EQ((co_await client.queue_pair->send(client.local(0, 33))).status,
                  Status::message_too_long);
        co_await client.meet();
      });
}

// --- extents -------------------------------------------------------------------------------

namespace {

constexpr std::array kThree{Extent{0, 8192, 100}, Extent{100, 300, 50}, Extent{150, 4099, 1000}};

// What three extents hold of a region, in order.
std::vector<std::byte> file(const pmem::Region& region) {
  return joined(
      {contents(region, 8192, 100), contents(region, 300, 50), contents(region, 4099, 1000)});
}

}  // namespace

TEST_P(FabricAccess, AnAccessGoesOverExtentsThatAdjoin) {
  PERDURA_NEEDS(extents);
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    PairOptions options;
    options.memory = medium;
    RemoteKey key;
    connected(
        options,
        [&](Side& server) -> Task<> {
          key = server.thread.endpoint.register_extents(*server.region, kThree, Access::remote_all)
                    .key;
          co_await server.meet();
          co_await server.meet();
          const auto whole = pattern(1150, 5);
          EXPECT_EQ(file(*server.region), whole);
          auto outside = contents(*server.region, 0, kMemory);
          for (const Extent& extent : kThree) {
            std::fill_n(outside.begin() + static_cast<std::ptrdiff_t>(extent.offset), extent.length,
                        std::byte{0});
          }
          EXPECT_EQ(outside, std::vector<std::byte>(kMemory));
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          client.region->write(0, pattern(1150, 5));
          const ExtentMap map{nullptr, key, Access::remote_all};
          EXPECT_TRUE(co_await client.queue_pair->write(client.local(0, 70), map.remote(0)));
          const LocalPieces rest(client.local(70, 40), client.local(110, 1040));
          EXPECT_TRUE(co_await client.queue_pair->write(rest, map.remote(70)));
          for (const Bytes at : {0, 99, 100, 120, 149, 150, 1149}) {
            for (const std::uint32_t length : {0, 1, 30, 1150}) {
              if (at + length > 1150) continue;
              EXPECT_TRUE(
                  co_await client.queue_pair->read(client.local(4096, length), map.remote(at)));
              EXPECT_EQ(contents(*client.region, 4096, length), part(pattern(1150, 5), at, length));
            }
          }
          if (client.thread.endpoint.capabilities().flush) {
            EXPECT_TRUE(co_await client.queue_pair->flush(map.remote(0), 1150,
                                                          fabric::Placement::global_visibility));
          }
          co_await client.meet();
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, AnAccessGoesOverManyExtents) {
  PERDURA_NEEDS(extents);
  // Extents of 1, 8, 15, ... bytes, which lie in the region in the opposite order.
  std::vector<Extent> many;
  Bytes size = 0;
  for (Bytes length = 1; length < 200; size += length, length += 7) {
    many.push_back({size, 32 * KiB - 250 * (many.size() + 1), length});
  }
  RemoteKey key;
  connected(
      [&](Side& server) -> Task<> {
        key = server.thread.endpoint.register_extents(*server.region, many, Access::remote_all).key;
        co_await server.meet();
        co_await server.meet();
        std::vector<std::byte> whole;
        for (const Extent& extent : many) {
          whole = joined({whole, contents(*server.region, extent.offset, extent.length)});
        }
        EXPECT_EQ(whole, pattern(size, 6));
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        const auto all = static_cast<std::uint32_t>(size);
        client.region->write(0, pattern(all, 6));
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(0, all), {key, 0}));
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(16 * KiB, all), {key, 0}));
        EXPECT_EQ(contents(*client.region, 16 * KiB, all), pattern(all, 6));
        co_await client.meet();
      });
}

TEST_P(FabricAccess, AHoleIsOutOfReachAndNothingIsTouched) {
  PERDURA_NEEDS(extents);
  struct Range {
    Bytes at;
    std::uint32_t length;
  };
  // Extents at 100 to 200 and 300 to 400.
  constexpr std::array kTwo{Extent{300, 0, 100}, Extent{100, 4096, 100}};
  constexpr std::array kRanges{
      Range{99, 1},  Range{99, 2},    Range{200, 1},
      Range{199, 2}, Range{150, 200}, Range{399, 2},
      Range{400, 1}, Range{0, 8},     Range{std::numeric_limits<Bytes>::max(), 1}};
  for (std::size_t i = 0; i < 2 * kRanges.size(); ++i) {
    const Range range = kRanges.at(i / 2);
    const auto opcode = i % 2 == 0 ? fabric::Opcode::write : fabric::Opcode::read;
    RemoteKey key;
    connected(
        [&](Side& server) -> Task<> {
          key =
              server.thread.endpoint.register_extents(*server.region, kTwo, Access::remote_all).key;
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(contents(*server.region, 0, kMemory), std::vector<std::byte>(kMemory));
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          client.region->write(0, pattern(256));
          fabric::RdmaOperation operation(*client.queue_pair,
                                          {.opcode = opcode,
                                           .local = client.local(0, range.length),
                                           .remote = {key, range.at}});
          EXPECT_EQ((co_await operation).status, Status::remote_access_error)
              << to_string(opcode) << " of " << range.length << " bytes at " << range.at;
          EXPECT_EQ(contents(*client.region, 0, 256), pattern(256));
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, ExtentsHaveTheRightsOfTheirRegistration) {
  PERDURA_NEEDS(extents);
  RemoteKey key;
  connected(
      [&](Side& server) -> Task<> {
        key = server.thread.endpoint.register_extents(*server.region, kThree, Access::remote_read)
                  .key;
        co_await server.meet();
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 200), {key, 0}));
        EXPECT_EQ((co_await client.queue_pair->write(client.local(0, 8), {key, 0})).status,
                  Status::remote_access_error);
        co_await client.meet();
      });
}

TEST_P(FabricAccess, AtomicsWorkOnWordsOfTheRegionThatAreInOneExtent) {
  PERDURA_NEEDS(extents);
  PERDURA_NEEDS(atomics);
  // Of the words at 0, 12 and 16 of the registration the first is an aligned word of the region,
  // the second is in two extents, the third is not aligned.
  constexpr std::array kWords{Extent{0, 64, 16}, Extent{16, 1028, 16}};
  for (const Bytes at : {0, 12, 16}) {
    RemoteKey key;
    connected(
        [&](Side& server) -> Task<> {
          server.region->store(64, 41);
          key = server.thread.endpoint.register_extents(*server.region, kWords, Access::remote_all)
                    .key;
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(server.region->load(64), at == 0 ? 42U : 41U);
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          const auto done = co_await client.queue_pair->fetch_and_add({key, at}, 1);
          EXPECT_EQ(done.status, at == 0 ? Status::success : Status::remote_access_error) << at;
          EXPECT_EQ(done.old_value, at == 0 ? 41U : 0U);
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, WhatTakesThePlaceOfAnExtentIsReadAndWrittenInstead) {
  PERDURA_NEEDS(extents);
  RemoteKey key;
  connected(
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        for (Bytes i = 0; i < 8; ++i) server.region->store(i * 4096, i);
        const ExtentMap map = endpoint.register_extents(*server.region, {}, Access::remote_all);
        key = map.key;
        for (Bytes i = 1; i < 8; ++i) {
          // A file grows at its end; then its first block is somewhere else.
          co_await endpoint.map_extent(map, {(i - 1) * 4096, i * 4096, 4096});
        }
        co_await server.meet();
        co_await server.meet();
        co_await endpoint.map_extent(map, {0, 0, 4096});
        server.region->store(4096, 100);
        co_await server.meet();
        co_await server.meet();
        EXPECT_EQ(server.region->load(0), 55U);
        EXPECT_EQ(server.region->load(4096), 100U) << "the old block belongs to somebody else";
        co_await endpoint.unmap_extents(map, 0, 4096);
        co_await server.meet();
        co_await server.meet();
        EXPECT_EQ(server.region->load(0), 55U);
        EXPECT_EQ(server.region->load(4096), 100U);
      },
      [&](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        co_await client.meet();
        for (Bytes i = 1; i < 8; ++i) {
          EXPECT_TRUE(co_await peer.read(client.local(0, 8), {key, (i - 1) * 4096}));
          EXPECT_EQ(client.region->load(0), i);
        }
        co_await client.meet();
        co_await client.meet();
        EXPECT_TRUE(co_await peer.read(client.local(0, 8), {key, 0}));
        EXPECT_EQ(client.region->load(0), 0U);
        client.region->store(0, 55);
        EXPECT_TRUE(co_await peer.write(client.local(0, 8), {key, 0}));
        EXPECT_TRUE(co_await peer.read(client.local(0, 8), {key, 0}));
        co_await client.meet();
        co_await client.meet();
        EXPECT_TRUE(co_await peer.read(client.local(0, 8), {key, 4096}));
        client.region->store(0, 66);
        EXPECT_EQ((co_await peer.write(client.local(0, 8), {key, 0})).status,
                  Status::remote_access_error);
        co_await client.meet();
      });
}

// A file system moves a block again and again, and gives the place that it was in to somebody else,
// who writes poison there. Nobody ever reads it, and nobody writes over it.
TEST_P(FabricAccess, WhenAChangeHasBeenMadeNobodyUsesWhatWentOut) {
  PERDURA_NEEDS(extents);
  constexpr std::uint64_t kPoison = 0xDEADDEADDEADDEAD;
  constexpr Bytes kBlock = 12 * KiB;
  constexpr int kMoves = 200;
  RemoteKey key;
  bool moving = true;
  connected(
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        const std::array first{Extent{0, 0, kBlock}};
        const ExtentMap map = endpoint.register_extents(*server.region, first, Access::remote_all);
        key = map.key;
        co_await server.meet();
        const std::vector<std::uint64_t> poison(kBlock / kWord, kPoison);
        const auto poisoned = std::as_bytes(std::span(poison));
        for (int i = 1; i <= kMoves; ++i) {
          const Bytes next = i % 2 == 0 ? 0 : 3 * kBlock;
          const Bytes old = 3 * kBlock - next;
          if (i > 1) {
            const auto found = contents(*server.region, next, kBlock);
            EXPECT_TRUE(std::equal(found.begin(), found.end(), poisoned.begin())) << i;
          }
          server.region->write(next, std::vector<std::byte>(kBlock));
          // In two extents every other time, so that accesses go over both.
          if (i % 4 < 2) {
            co_await endpoint.map_extent(map, {0, next, kBlock});
          } else {
            co_await endpoint.map_extent(map, {kBlock / 2, next + kBlock / 2, kBlock / 2});
            co_await endpoint.map_extent(map, {0, next, kBlock / 2});
          }
          // From the end, where a READ that has begun comes last.
          for (Bytes at = kBlock; at > 0; at -= KiB) {
            server.region->write(old + at - KiB, poisoned.first(KiB));
          }
          co_await sleep_for(Microseconds(static_cast<std::int64_t>(i % 7)));
        }
        moving = false;
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        co_await client.meet();
        std::uint64_t rounds = 0;
        for (; rounds < 10 || std::atomic_ref(moving).load(); ++rounds) {
          for (Bytes at = 0; at < kBlock; at += kWord) client.region->store(at, rounds);
          const LocalPieces out(client.local(0, 100), client.local(100, kBlock - 100));
          const auto written = co_await peer.write(out, {key, 0});
          const auto read = co_await peer.read(client.local(16 * KiB, kBlock), {key, 0});
          if (!written || !read) {
            ADD_FAILURE() << to_string(written.status) << ", " << to_string(read.status);
            break;
          }
          std::size_t poison = 0;
          for (Bytes at = 0; at < kBlock; at += kWord) {
            poison += client.region->load(16 * KiB + at) == kPoison ? 1 : 0;
          }
          if (poison != 0) {
            ADD_FAILURE() << poison << " words of somebody else's";
            break;
          }
        }
        co_await client.meet();
      });
}

TEST_P(FabricAccess, ADeregisteredMapIsRefused) {
  PERDURA_NEEDS(extents);
  RemoteKey key;
  connected(
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        const ExtentMap map = endpoint.register_extents(*server.region, kThree, Access::remote_all);
        key = map.key;
        co_await server.meet();
        co_await server.meet();
        endpoint.deregister_memory(map);
        const ExtentMap next =
            endpoint.register_extents(*server.region, kThree, Access::remote_all);
        EXPECT_FALSE(next.key == map.key);
        bool refused = false;
        try {
          co_await endpoint.map_extent(map, {0, 0, 8});
        } catch (const PlatformError&) {
          refused = true;
        }
        EXPECT_TRUE(refused);
        co_await server.meet();
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 8), {key, 0}));
        co_await client.meet();
        co_await client.meet();
        EXPECT_EQ((co_await client.queue_pair->read(client.local(0, 8), {key, 0})).status,
                  Status::remote_access_error);
        co_await client.meet();
      });
}

TEST_P(FabricAccess, ExtentsOutsideTheRegionOrInEachOtherAreRefused) {
  with_idle_server([](Side& client) -> Task<> {
    fabric::Endpoint& endpoint = client.thread.endpoint;
    const auto registers = [&](std::initializer_list<Extent> extents) {
      try {
        endpoint.register_extents(*client.region, extents, Access::remote_all);
        return true;
      } catch (const PlatformError&) {
        return false;
      }
    };
    // Where there are none at all, that is said instead.
    EXPECT_EQ(registers({{0, 0, 64}, {64, 0, 64}}), endpoint.capabilities().extents);
    EXPECT_FALSE(registers({{0, kMemory - 63, 64}}));
    EXPECT_FALSE(registers({{0, 0, 64}, {63, 128, 64}}));
    co_return;
  });
}

}  // namespace perdura::conformance
