// Processes that share a machine: what dies with one, what stays, and what else may fail alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "platform/base/error.h"
#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

using fabric::Access;
using fabric::Status;
using pmem::Medium;

constexpr std::uint64_t kWords = 10;

// Two processes of one machine, and a machine besides.
const Machines kTwoAndOne{0, 0, 2};

Task<> forever() {
  for (;;) co_await sleep_for(std::chrono::seconds(1));
}

// Stores 1, 2, 3, ... into words of lines of their own, without suspending in between.
Task<> count_in(Region& pool, bool flush) {
  for (std::uint64_t i = 0; i < kWords; ++i) {
    pool.store(i * kCacheLine, i + 1);
    if (flush) pool.persist(i * kCacheLine, kWord);
  }
  co_await forever();
}

std::vector<std::uint64_t> counted(Node& node) {
  const auto pool = node.open_region("pool");
  std::vector<std::uint64_t> words;
  for (std::uint64_t i = 0; i < kWords; ++i) words.push_back(pool->load(i * kCacheLine));
  return words;
}

// 1, 2, 3, ... and then zeros.
std::size_t length_of_prefix(const std::vector<std::uint64_t>& words) {
  std::size_t length = 0;
  while (length < words.size() && words[length] == length + 1) ++length;
  for (std::size_t i = length; i < words.size(); ++i) EXPECT_EQ(words[i], 0U) << "word " << i;
  return length;
}

TEST(SimProcesses, AMachineIsNamedByTheFirstOfItsNodes) {
  SimPlatform platform(testbed(), 4, kTwoAndOne);
  for (const auto& [node, machine] :
       std::vector<std::pair<NodeId, NodeId>>{{0, 0}, {1, 0}, {2, 2}, {3, 3}}) {
    EXPECT_EQ(platform.local_node(node)->machine(), machine);
  }
  EXPECT_THROW(SimPlatform(testbed(), 2, {1, 1}), UsageError);
  EXPECT_THROW(SimPlatform(testbed(), 3, {0, 0, 1}), UsageError);
}

TEST(SimProcesses, ShareThePersistentRegionsOfTheirMachineAlone) {
  SimPlatform platform(testbed(), 3, kTwoAndOne);
  const auto mine = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  mine->store(8, 7);
  EXPECT_EQ(platform.local_node(1)->open_region("pool")->load(8), 7U);
  EXPECT_THROW(platform.local_node(1)->create_region("pool", kPoolSize, Medium::pm), UsageError);
  EXPECT_EQ(platform.local_node(2)->open_region("pool"), nullptr);
}

// A region's owner excludes the other processes of its machine until it dies.
TEST(SimProcesses, OwnRegionsAsLongAsTheyLive) {
  SimPlatform platform(testbed(), 3, kTwoAndOne);
  platform.track_durability({PersistenceDomain::dmp, false});
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  std::shared_ptr<void> stays;  // where no destructor of the dead process comes to it
  platform.start_service(1, 5, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    stays = thread.node.own_region("pool");
    co_await forever();
  });
  platform.start(0, 5, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await sleep_for(Milliseconds(1));
    EXPECT_NE(stays, nullptr);
    EXPECT_EQ(thread.node.own_region("pool"), nullptr);
    platform.kill(1);
    co_await sleep_for(Milliseconds(1));
    EXPECT_NE(thread.node.own_region("pool"), nullptr);
  });
  platform.run();
}

// What a process has stored and not flushed is there for the others, for its successor, and until
// the power fails; its connection is gone, those of the others are not.
TEST(SimProcesses, ADeathTakesNothingButTheProcess) {
  SimPlatform platform(testbed(), 3, kTwoAndOne);
  platform.track_durability({PersistenceDomain::dmp, false});
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  int serving = 0;
  const auto serve = [&](Thread& thread) -> Task<> {
    const auto opened = thread.node.open_region("pool");
    opened->store(thread.node.id() * kCacheLine, opened->load(thread.node.id() * kCacheLine) + 1);
    const auto request = co_await thread.endpoint.next_connection();
    const auto client = request->accept({}, {});
    ++serving;
    co_await forever();
  };
  platform.start_service(0, 5, CompletionMode::polling, serve);
  platform.start_service(1, 5, CompletionMode::polling, serve);
  platform.start(2, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto dies = co_await thread.endpoint.connect({0, 5}, {}, {});
    const auto lives = co_await thread.endpoint.connect({1, 5}, {}, {});
    co_await sleep_for(Milliseconds(1));
    platform.kill(0);
    co_await sleep_for(Milliseconds(1));
    EXPECT_FALSE(dies.queue_pair->connected());
    EXPECT_TRUE(lives.queue_pair->connected());
    EXPECT_EQ(pool->load(0), 1U);
    platform.start_service(0, 5, CompletionMode::polling, serve);
    const auto again = co_await thread.endpoint.connect({0, 5}, {}, {});
    EXPECT_EQ(again.status, Status::success);
    EXPECT_EQ(pool->load(0), 2U) << "its successor finds what it has stored";
    EXPECT_EQ(pool->load(kCacheLine), 1U);
    pmem::LeastChoices least;
    platform.fail_power(1, least);
    co_await sleep_for(Milliseconds(1));
    EXPECT_FALSE(again.queue_pair->connected()) << "the power of a machine takes all processes";
    EXPECT_FALSE(lives.queue_pair->connected());
    EXPECT_EQ(platform.local_node(0)->open_region("pool")->load(0), 0U) << "nobody has flushed";
  });
  platform.run();
  EXPECT_EQ(serving, 3);
}

// A task runs ahead of time; the stores that lie behind its process's death are not made.
TEST(SimProcesses, ADeathMayFallBetweenAnyTwoStores) {
  std::set<std::size_t> found;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2, {0, 0});
    platform.track_durability({PersistenceDomain::wsp, true});
    const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
    platform.start_service(0, 0, CompletionMode::polling,
                           [&](Thread&) { return count_in(*pool, false); });
    platform.start(1, 1, CompletionMode::polling,
                   [](Thread&) -> Task<> { co_await sleep_for(Microseconds(50)); });
    std::size_t stored = 0;
    failure.watch(platform, [&](pmem::Choices&) {
      platform.kill(0);
      stored = length_of_prefix(counted(*platform.local_node(1)));
      found.insert(stored);
    });
    platform.run();
    if (!failure.happened()) return;
    EXPECT_EQ(length_of_prefix(counted(*platform.local_node(1))), stored)
        << "something comes of the dead process later";
  });
  EXPECT_EQ(found.size(), kWords + 1) << "any number of the stores may have been made";
}

// The same for what a later failure of power may leave: nothing that was never stored.
TEST(SimProcesses, WhatADeadProcessHasNotStoredIsInNoImage) {
  std::set<std::size_t> found;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2, {0, 0});
    platform.track_durability({PersistenceDomain::mhp, true});
    const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
    platform.start_service(0, 0, CompletionMode::polling,
                           [&](Thread&) { return count_in(*pool, true); });
    platform.start(1, 1, CompletionMode::polling,
                   [](Thread&) -> Task<> { co_await sleep_for(Microseconds(50)); });
    failure.watch(platform, [&](pmem::Choices&) {
      platform.kill(0);
      const std::size_t stored = length_of_prefix(counted(*platform.local_node(1)));
      platform.at(platform.engine().now() + Microseconds(30), [&platform, stored, &found] {
        pmem::MostChoices most;
        platform.fail_power(0, most);
        EXPECT_EQ(length_of_prefix(counted(*platform.local_node(1))), stored);
        found.insert(stored);
        platform.start_service(1, 2, CompletionMode::polling, [](Thread&) { return forever(); });
      });
      platform.start(1, 3, CompletionMode::polling,
                     [](Thread&) -> Task<> { co_await sleep_for(Microseconds(60)); });
    });
    platform.run();
  });
  EXPECT_EQ(found.size(), kWords + 1);
}

// A process that has seen a store may have acted on it: then the store was made, and what its
// thread did before it.
TEST(SimProcesses, WhatAnotherHasSeenWasStored) {
  SimPlatform platform(testbed(), 2, {0, 0});
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  constexpr std::uint64_t kSeen = 9;
  platform.start_service(0, 0, CompletionMode::polling,
                         [&](Thread&) { return count_in(*pool, false); });
  platform.start(1, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
    const auto opened = platform.local_node(1)->open_region("pool");
    EXPECT_EQ(opened->load((kSeen - 1) * kCacheLine), kSeen);
    co_await yield();
    platform.kill(0);
    const auto words = counted(*platform.local_node(1));
    EXPECT_EQ(length_of_prefix(words), kSeen);
  });
  platform.run();
}

// So it is also what a power failure right after that death leaves, if it was flushed.
TEST(SimProcesses, WhatAnotherHasSeenIsInTheImage) {
  SimPlatform platform(testbed(), 2, {0, 0});
  platform.track_durability({PersistenceDomain::dmp, false});
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  constexpr std::uint64_t kSeen = 9;
  bool failed = false;
  platform.start_service(0, 0, CompletionMode::polling,
                         [&](Thread&) { return count_in(*pool, true); });
  platform.start_service(1, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
    const auto opened = platform.local_node(1)->open_region("pool");
    EXPECT_EQ(opened->load((kSeen - 1) * kCacheLine), kSeen);
    platform.at(platform.engine().now(), [&] {
      platform.kill(0);
      pmem::LeastChoices least;
      platform.fail_power(0, least);
      failed = true;
      // The last of them was seen before it was flushed.
      EXPECT_EQ(length_of_prefix(counted(*platform.local_node(0))), kSeen - 1);
    });
    co_await forever();
  });
  platform.start(1, 2, CompletionMode::polling,
                 [](Thread&) -> Task<> { co_await sleep_for(Microseconds(100)); });
  platform.run();
  EXPECT_TRUE(failed);
}

// The bytes that a dead process would have stored come between those of another: each keeps what is
// its own.
TEST(SimProcesses, OthersKeepWhatTheyHaveStoredAroundIt) {
  std::vector<std::byte> memory(4 * kCacheLine);
  pmem::sim::Timeline timeline(memory.data());
  pmem::sim::StoringThread dies;
  pmem::sim::StoringThread lives;
  const auto at = [](int ns) { return Time(Nanoseconds(ns)); };
  const auto filled = [](Bytes size, int with) {
    return std::vector<std::byte>(size, static_cast<std::byte>(with));
  };
  using Writer = pmem::sim::Timeline::Writer;
  timeline.change(at(0), 0, filled(64, 1), Writer::cpu, {at(10), {}}, &lives);
  // Four lines, of which the first two are visible when it dies.
  timeline.change(at(0), 0, filled(256, 2), Writer::cpu, {at(20), Nanoseconds(10)}, &dies);
  timeline.change(at(0), 130, filled(60, 3), Writer::cpu, {at(25), {}}, &lives);
  timeline.change(at(0), 128, filled(128, 4), Writer::cpu, {at(60), {}}, &dies);
  timeline.withdraw(dies, at(35), at(35));
  auto expected = filled(128, 2);
  expected.resize(256);
  std::fill_n(expected.begin() + 130, 60, std::byte{3});
  EXPECT_EQ(memory, expected);
  // A device that looks before the survivor's store sees what was there before all of it.
  std::vector<std::byte> seen(256);
  timeline.device_read(0, seen, {at(15), {}});
  auto before = filled(64, 1);
  before.resize(256);
  EXPECT_EQ(seen, before);
  timeline.device_read(0, seen, {at(24), {}});
  std::fill_n(before.begin(), 64, std::byte{2});
  EXPECT_EQ(seen, before);
}

// --- registrations -------------------------------------------------------------------------------

// A process reaches what it has registered itself; its key says nothing to its neighbor's
// connections, and nothing to those of its successor.
TEST(SimProcesses, ARegistrationIsOfOneProcessAndItsLife) {
  SimPlatform platform(testbed(), 3, kTwoAndOne);
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, Medium::pm);
  fabric::RemoteKey key;
  const auto serve = [&](bool registers) {
    return [&, registers](Thread& thread) -> Task<> {
      const auto opened = thread.node.open_region("pool");
      if (registers) key = thread.endpoint.register_memory(*opened, Access::remote_all).key;
      std::vector<std::unique_ptr<fabric::QueuePair>> clients;
      for (;;) clients.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    };
  };
  platform.start_service(0, 5, CompletionMode::polling, serve(true));
  platform.start_service(1, 5, CompletionMode::polling, serve(false));
  platform.start(2, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("local", kCacheLine, Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const auto status_of = [&](NodeId server) -> Task<Status> {
      const auto made = co_await thread.endpoint.connect({server, 5}, {}, {});
      co_return (co_await made.queue_pair->read(memory.local(0, kWord), {key, 0})).status;
    };
    EXPECT_EQ(co_await status_of(0), Status::success);
    EXPECT_EQ(co_await status_of(1), Status::remote_access_error);
    platform.kill(0);
    platform.start_service(0, 5, CompletionMode::polling, serve(false));
    EXPECT_EQ(co_await status_of(0), Status::remote_access_error);
  });
  platform.run();
}

// --- several machines at once, and single connections --------------------------------------------

TEST(SimProcesses, ThePowerOfSeveralMachinesFailsAtOneInstant) {
  SimPlatform platform(testbed(), 4, kTwoAndOne);
  platform.track_durability({PersistenceDomain::dmp, false});
  for (const NodeId node : {0U, 2U, 3U}) {
    platform.local_node(node)->create_region("pool", kPoolSize, Medium::pm)->store(0, 1);
  }
  int lived = 0;
  for (NodeId node = 0; node < 4; ++node) {
    platform.start(node, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
      co_await sleep_for(Milliseconds(2));
      ++lived;
    });
  }
  platform.at(Time(Milliseconds(1)), [&] {
    pmem::LeastChoices least;
    const std::vector<NodeId> failing{1, 2, 0};
    platform.fail_power(failing, least);
  });
  platform.run();
  EXPECT_EQ(lived, 1);
  for (const auto& [node, word] :
       std::vector<std::pair<NodeId, std::uint64_t>>{{0, 0}, {2, 0}, {3, 1}}) {
    EXPECT_EQ(platform.local_node(node)->open_region("pool")->load(0), word) << "node " << node;
  }
}

// Whoever waits for an answer from a listener that ends learns of it as soon as those that are
// connected, not when it loses its patience.
TEST(SimProcesses, WhoIsConnectingLearnsThatTheListenerHasEnded) {
  for (const bool power_fails : {false, true}) {
    SimPlatform platform(testbed(), 2);
    platform.track_durability({});
    platform.start_service(0, 5, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const auto never_answered = co_await thread.endpoint.next_connection();
      co_await forever();
    });
    const Time end{Microseconds(100)};
    platform.at(end, [&] {
      pmem::LeastChoices least;
      if (power_fails) {
        platform.fail_power(0, least);
      } else {
        platform.kill(0);
      }
    });
    int told = 0;
    for (fabric::Port port = 1; port <= 2; ++port) {
      platform.start(1, port, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        const auto connection = co_await thread.endpoint.connect({0, 5}, {}, {});
        EXPECT_EQ(connection.status, Status::disconnected);
        EXPECT_GT(thread.executor.now(), end);
        EXPECT_LT(thread.executor.now(), end + Microseconds(10));
        ++told;
      });
    }
    platform.run();
    EXPECT_EQ(told, 2);
  }
}

// Both sides of a broken connection learn of it; other connections of the same nodes do not break.
TEST(SimProcesses, AConnectionBreaksAlone) {
  for (const bool server_first : {false, true}) {
    SimPlatform platform(testbed(), 2);
    int ended = 0;
    platform.start_service(0, 5, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      fabric::CompletionQueue completions;
      const auto request = co_await thread.endpoint.next_connection();
      const auto client = request->accept({nullptr, &completions}, {});
      EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
      EXPECT_FALSE(client->connected());
      ++ended;
    });
    platform.start_service(0, 6, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto client = (co_await thread.endpoint.next_connection())->accept({}, {});
      co_await forever();
    });
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("local", kCacheLine, Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, Access::local);
      fabric::CompletionQueue completions;
      const auto breaks = co_await thread.endpoint.connect({0, 5}, {nullptr, &completions}, {});
      const auto other = co_await thread.endpoint.connect({0, 6}, {}, {});
      // No buffer is posted for it, so it is still under way.
      auto send = breaks.queue_pair->send(memory.local(0, kWord));
      send.post();
      co_await sleep_for(Microseconds(10));
      const fabric::Address server{0, 5};
      const fabric::Address client{1, 1};
      EXPECT_TRUE(platform.connected(client, server) && platform.connected(server, client));
      EXPECT_FALSE(platform.connected(client, {0, 7}));
      EXPECT_EQ(platform.break_connections(server_first ? server : client,
                                           server_first ? client : server),
                1U);
      EXPECT_EQ((co_await send).status, Status::flushed);
      EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
      EXPECT_FALSE(breaks.queue_pair->connected());
      EXPECT_TRUE(other.queue_pair->connected());
      EXPECT_FALSE(platform.connected(client, server));
      EXPECT_EQ(platform.break_connections(client, server), 0U);
      ++ended;
      co_await sleep_for(Milliseconds(1));
    });
    platform.run();
    EXPECT_EQ(ended, 2);
  }
}

// Of a long WRITE that is on the wire a part may have left: the rest is lost.
TEST(SimProcesses, ABrokenConnectionMayTearAWrite) {
  constexpr Bytes kLong = 32 * KiB;
  std::set<Bytes> found;
  for (int step = 0; step < 300; ++step) {
    SimPlatform platform(testbed(), 2);
    const auto pool = platform.local_node(0)->create_region("pool", kLong, Medium::pm);
    fabric::RemoteKey key;
    platform.start_service(0, 5, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      key = thread.endpoint.register_memory(*pool, Access::remote_all).key;
      const auto client = (co_await thread.endpoint.next_connection())->accept({}, {});
      co_await forever();
    });
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("local", kLong, Medium::dram);
      std::fill_n(region->data(), kLong, std::byte{1});
      const auto memory = thread.endpoint.register_memory(*region, Access::local);
      const auto made = co_await thread.endpoint.connect({0, 5}, {}, {});
      platform.at(thread.executor.now() + Nanoseconds(50 * step), [&] {
        platform.break_connections({1, 1}, {0, 5});
      });
      static_cast<void>(co_await made.queue_pair->write(
          memory.local(0, static_cast<std::uint32_t>(kLong)), {key, 0}));
      co_await sleep_for(Milliseconds(1));
      const std::span<const std::byte> bytes(pool->data(), kLong);
      const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{1}), end - bytes.begin());
      found.insert(static_cast<Bytes>(end - bytes.begin()));
    });
    platform.run();
  }
  EXPECT_TRUE(found.contains(0));
  EXPECT_TRUE(found.contains(kLong));
  EXPECT_GT(found.size(), 2U);
}

}  // namespace
}  // namespace perdura::sim::test
