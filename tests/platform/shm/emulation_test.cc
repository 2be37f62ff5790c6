// What shm adds to shared memory: an emulated network, and threads that sleep and are woken.
#include <gtest/gtest.h>

#include <deque>

#include "platform/shm/shm_platform.h"

namespace perdura::shm_test {

using fabric::Access;

namespace {

// Body of a client with one connection to a server that does nothing.
void with_connection(const ShmOptions& options,
                     const std::function<Task<>(Thread&, fabric::QueuePair&, fabric::MemoryRegion,
                                                fabric::RemoteAddress)>& client) {
  ShmPlatform platform(options);
  const auto barrier = platform.create_barrier(2);
  fabric::RemoteAddress there;
  platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("server", 4096, pmem::Medium::dram);
    there = thread.endpoint.register_memory(*region, Access::remote_all).remote(0);
    auto peer = (co_await thread.endpoint.next_connection())->accept({}, {});
    co_await barrier->arrive_and_wait();
  });
  platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("client", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    co_await client(thread, *connection.queue_pair, memory, there);
    co_await barrier->arrive_and_wait();
  });
  platform.run();
}

}  // namespace

// A commit takes the time of the lines that were written, and of no others: of each WRITE, of the
// APPEND and of the size.
TEST(Emulation, ACommitWritesBackWhatIsDirty) {
  constexpr Nanoseconds kLine = Milliseconds(5);
  ShmOptions options;
  options.node_count = 2;
  options.write_latency = kLine;
  ShmPlatform platform(options);
  const auto barrier = platform.create_barrier(2);
  fabric::RemoteKey key;
  platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("server", 256 * KiB, pmem::Medium::pm);
    constexpr std::array kFile{fabric::Extent{0, 128 * KiB, 64 * KiB},
                               fabric::Extent{64 * KiB, 64 * KiB, 64 * KiB}};
    const auto map = thread.endpoint.register_extents(*region, kFile, Access::remote_all);
    fabric::RangeFaults faults;
    thread.endpoint.allow_appends(map, 0, faults);
    key = map.key;
    auto peer = (co_await thread.endpoint.next_connection())->accept({}, {});
    co_await barrier->arrive_and_wait();
  });
  platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("client", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    fabric::QueuePair& peer = *connection.queue_pair;
    EXPECT_TRUE(co_await peer.append(memory.local(0, 8), key));
    EXPECT_TRUE(co_await peer.write(memory.local(0, 8), {key, 50 * KiB}));
    EXPECT_TRUE(co_await peer.write(memory.local(0, 130), {key, 100 * KiB}));
    const Time start = thread.executor.now();
    EXPECT_TRUE(co_await peer.commit(key));
    const Picoseconds whole = thread.executor.now() - start;
    EXPECT_GE(whole, 6 * kLine);
    EXPECT_LT(whole, 100 * kLine) << "the file has 2048 lines";
    const Time again = thread.executor.now();
    EXPECT_TRUE(co_await peer.write(memory.local(0, 8), {key, 0}, {.commit = true}));
    const Picoseconds of_one = thread.executor.now() - again;
    EXPECT_GE(of_one, 2 * kLine);
    EXPECT_LT(of_one, 100 * kLine);
    co_await barrier->arrive_and_wait();
  });
  platform.run();
}

TEST(Emulation, NetworkLatencyPassesOnceEachWayAndOverlaps) {
  ShmOptions options;
  options.node_count = 2;
  options.fabric.network_latency = Milliseconds(50);
  with_connection(options,
                  [](Thread& thread, fabric::QueuePair& peer, fabric::MemoryRegion memory,
                     fabric::RemoteAddress there) -> Task<> {
                    const Time start = thread.executor.now();
                    std::deque<fabric::RdmaOperation> reads;
                    for (int i = 0; i < 20; ++i) {
                      reads
                          .emplace_back(peer, fabric::WorkRequest{.opcode = fabric::Opcode::read,
                                                                  .local = memory.local(0, 8),
                                                                  .remote = there})
                          .post();
                    }
                    for (fabric::RdmaOperation& read : reads) EXPECT_TRUE(co_await read);
                    const Picoseconds taken = thread.executor.now() - start;
                    EXPECT_GE(taken, Milliseconds(100));
                    EXPECT_LT(taken, Milliseconds(1000));  // 20 one after the other take 2000
                    EXPECT_LT(thread.node.cpu_time(), Milliseconds(50));
                  });
}

TEST(Emulation, AWriteTakesEffectAfterOneWay) {
  ShmOptions options;
  options.node_count = 2;
  options.fabric.network_latency = Milliseconds(3);
  with_connection(options,
                  [](Thread& thread, fabric::QueuePair& peer, fabric::MemoryRegion memory,
                     fabric::RemoteAddress there) -> Task<> {
                    auto add = peer.fetch_and_add(there, 5);
                    const Time start = thread.executor.now();
                    add.post();
                    EXPECT_EQ((co_await add).old_value, 0U);
                    EXPECT_GE(thread.executor.now() - start, Milliseconds(6));
                    EXPECT_TRUE(co_await peer.read(memory.local(0, 8), there));
                    EXPECT_EQ(memory.region->load(0), 5U);
                  });
}

TEST(Emulation, AFencedOperationStartsWhenEarlierReadsHaveCompleted) {
  ShmOptions options;
  options.node_count = 2;
  options.fabric.network_latency = Milliseconds(3);
  with_connection(options,
                  [](Thread& thread, fabric::QueuePair& peer, fabric::MemoryRegion memory,
                     fabric::RemoteAddress there) -> Task<> {
                    auto read = peer.read(memory.local(0, 8), there);
                    auto write = peer.write(memory.local(0, 8), there + 8, {.fenced = true});
                    const Time start = thread.executor.now();
                    read.post();
                    write.post();
                    EXPECT_TRUE(co_await read);
                    EXPECT_TRUE(co_await write);
                    EXPECT_GE(thread.executor.now() - start, Milliseconds(12));
                  });
}

// An endpoint has room for 4096 connections at a time: one that has ended must leave its place.
TEST(Emulation, ConnectionsThatEndLeaveTheirPlaceToOthers) {
  constexpr std::uint32_t kTimes = fabric::shm::kMaxConnections + 100;
  ShmOptions options;
  options.node_count = 2;
  ShmPlatform platform(options);
  for (NodeId node = 0; node < 2; ++node) {
    platform.start(node, 1, CompletionMode::polling, [node](Thread& thread) -> Task<> {
      const auto receives = thread.endpoint.create_receive_queue(64);
      fabric::CompletionQueue completions;
      const fabric::QueuePairOptions queue_pair{.receive_queue = receives.get(),
                                                .completions = &completions};
      for (std::uint32_t i = 0; i < kTimes; ++i) {
        if (node == 1) {
          const auto connection = co_await thread.endpoint.connect({0, 1}, queue_pair, {});
          EXPECT_EQ(connection.status, fabric::Status::success);
          continue;
        }
        auto request = co_await thread.endpoint.next_connection();
        const auto peer = request->accept(queue_pair, {});
        EXPECT_EQ((co_await completions.next()).status, fabric::Status::disconnected);
      }
    });
  }
  platform.run();
}

// Two sleepers wake each other again and again: a lost wake-up would leave both asleep.
TEST(Emulation, SleepersLoseNoWakeUp) {
  constexpr int kRounds = 20000;
  ShmOptions options;
  options.node_count = 2;
  ShmPlatform platform(options);
  for (NodeId node = 0; node < 2; ++node) {
    platform.start(node, 1, CompletionMode::event, [node](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("memory", 4096, pmem::Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, Access::local);
      const auto receives = thread.endpoint.create_receive_queue(2);
      for (std::uint64_t id = 0; id < 2; ++id) receives->post(memory.local(id * 64, 64), id);
      fabric::CompletionQueue completions;
      const fabric::QueuePairOptions queue_pair{.receive_queue = receives.get(),
                                                .completions = &completions};
      std::unique_ptr<fabric::QueuePair> peer;
      if (node == 0) {
        peer = (co_await thread.endpoint.next_connection())->accept(queue_pair, {});
      } else {
        peer = (co_await thread.endpoint.connect({0, 1}, queue_pair, {})).queue_pair;
        EXPECT_TRUE(co_await peer->send(memory.local(1024, 8)));
      }
      for (int i = 0; i < kRounds; ++i) {
        const auto message = co_await completions.next();
        if (message.status != fabric::Status::success) break;
        receives->post(memory.local(message.buffer_id * 64, 64), message.buffer_id);
        // Some rounds are long enough for the other side to fall asleep.
        if (i % 64 == 0) co_await sleep_for(Microseconds(50));
        EXPECT_TRUE(co_await peer->send(memory.local(1024, 8)) || i + 1 == kRounds);
      }
    });
  }
  platform.run();
}

TEST(Emulation, BarriersLoseNoWakeUp) {
  constexpr std::uint32_t kThreads = 4;
  ShmPlatform platform({});
  const auto barrier = platform.create_barrier(kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    platform.start(0, static_cast<fabric::Port>(i), CompletionMode::event, [&](Thread&) -> Task<> {
      for (int round = 0; round < 3000; ++round) {
        co_await barrier->arrive_and_wait();
      }
    });
  }
  platform.run();
}

}  // namespace perdura::shm_test
