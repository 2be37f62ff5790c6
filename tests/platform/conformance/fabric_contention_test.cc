// Several initiators, and CPUs, on the same memory.
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::Completion;
using fabric::RemoteAddress;

namespace {

constexpr std::uint32_t kInitiators = 4;
constexpr std::uint64_t kEach = 500;

}  // namespace

TEST_P(FabricContention, AddsOfManyInitiatorsAddUp) {
  PERDURA_NEEDS(atomics);
  const auto platform = make({.node_count = 3});
  const auto barrier = platform->create_barrier(kInitiators + 1);
  RemoteAddress counter;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("counter", 4096, pmem::Medium::dram);
    counter = thread.endpoint.register_memory(*region, Access::remote_all).remote(64);
    std::vector<std::unique_ptr<fabric::QueuePair>> peers;
    for (std::uint32_t i = 0; i < kInitiators; ++i) {
      peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    }
    co_await barrier->arrive_and_wait();
    EXPECT_EQ(region->load(64), kInitiators * kEach);
  });
  for (std::uint32_t i = 0; i < kInitiators; ++i) {
    platform->start(1 + i % 2, static_cast<fabric::Port>(10 + i), mode(),
                    [&](Thread& thread) -> Task<> {
                      auto peer = co_await thread.endpoint.connect({0, 1}, {}, {});
                      std::uint64_t last = 0;
                      for (std::uint64_t n = 0; n < kEach; ++n) {
                        const Completion done = co_await peer.queue_pair->fetch_and_add(counter, 1);
                        EXPECT_TRUE(done);
                        EXPECT_TRUE(n == 0 || done.old_value > last);
                        last = done.old_value;
                      }
                      co_await barrier->arrive_and_wait();
                    });
  }
  platform->run();
}

TEST_P(FabricContention, CompareAndSwapLosesNoUpdate) {
  PERDURA_NEEDS(atomics);
  const auto platform = make({.node_count = 3});
  const auto barrier = platform->create_barrier(kInitiators + 1);
  RemoteAddress word;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("word", 4096, pmem::Medium::dram);
    word = thread.endpoint.register_memory(*region, Access::remote_all).remote(0);
    std::vector<std::unique_ptr<fabric::QueuePair>> peers;
    for (std::uint32_t i = 0; i < kInitiators; ++i) {
      peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    }
    co_await barrier->arrive_and_wait();
    EXPECT_EQ(region->load(0), kInitiators * kEach);
  });
  for (std::uint32_t i = 0; i < kInitiators; ++i) {
    platform->start(1 + i % 2, static_cast<fabric::Port>(10 + i), mode(),
                    [&](Thread& thread) -> Task<> {
                      auto peer = co_await thread.endpoint.connect({0, 1}, {}, {});
                      std::uint64_t seen = 0;
                      for (std::uint64_t n = 0; n < kEach;) {
                        const Completion done =
                            co_await peer.queue_pair->compare_and_swap(word, seen, seen + 1);
                        EXPECT_TRUE(done);
                        if (done.old_value == seen) ++n;
                        seen = done.old_value == seen ? seen + 1 : done.old_value;
                      }
                      co_await barrier->arrive_and_wait();
                    });
  }
  platform->run();
}

namespace {

constexpr Bytes kWords = 64;
constexpr std::uint64_t kEveryByte = 0x0101010101010101;

// A word is whole if all its bytes tell the same version.
bool is_whole(std::uint64_t word) { return word == (word & 0xFF) * kEveryByte; }

}  // namespace

// Objects may be torn, words never.
TEST_P(FabricContention, AReadDuringLocalStoresSeesWholeWords) {
  connected(
      [](Side& server) -> Task<> {
        for (std::uint64_t version = 0; server.region->load(8192) == 0; ++version) {
          for (Bytes i = 0; i < kWords; ++i) {
            server.region->store(i * kWord, (version & 0xFF) * kEveryByte);
          }
          co_await sleep_for(Nanoseconds(50));
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (int n = 0; n < 3000; ++n) {
          EXPECT_TRUE(
              co_await client.queue_pair->read(client.local(0, kWords * kWord), client.there));
          for (Bytes i = 0; i < kWords; ++i) EXPECT_TRUE(is_whole(client.region->load(i * kWord)));
        }
        client.region->store(8192, 1);
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(8192, 8), client.there + 8192));
        co_await client.meet();
      });
}

TEST_P(FabricContention, LocalLoadsDuringAWriteSeeWholeWords) {
  connected(
      [](Side& server) -> Task<> {
        while (server.region->load(8192) == 0) {
          std::array<std::uint64_t, kWords> object;
          server.region->read(0, std::as_writable_bytes(std::span(object)));
          for (const std::uint64_t word : object) EXPECT_TRUE(is_whole(word));
          EXPECT_TRUE(is_whole(server.region->load(0)));
          co_await sleep_for(Nanoseconds(50));
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (std::uint64_t version = 0; version < 3000; ++version) {
          for (Bytes i = 0; i < kWords; ++i) {
            client.region->store(i * kWord, (version & 0xFF) * kEveryByte);
          }
          EXPECT_TRUE(
              co_await client.queue_pair->write(client.local(0, kWords * kWord), client.there));
        }
        client.region->store(8192, 1);
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(8192, 8), client.there + 8192));
        co_await client.meet();
      });
}

}  // namespace perdura::conformance
