// Nodes that are processes: together, killed, and replaced.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "platform/message_ring.h"
#include "tests/platform/shm/process.h"

namespace perdura::shm_test {

using fabric::Access;
using fabric::RemoteKey;
using fabric::Status;
using pmem::Medium;

namespace {

std::vector<std::byte> as_private_data(RemoteKey key) {
  std::vector<std::byte> bytes(sizeof key);
  std::memcpy(bytes.data(), &key, sizeof key);
  return bytes;
}

RemoteKey key_in(std::span<const std::byte> bytes) {
  RemoteKey key;
  std::memcpy(&key, bytes.data(), sizeof key);
  return key;
}

// Accepts connections one after the other, tells each the key of a region of `medium` and answers
// every message, until `connections` of them have ended.
Platform::Body echo_server(const Process::Voice& voice, int connections, Medium medium) {
  return [&voice, connections, medium](Thread& thread) -> Task<> {
    auto region = thread.node.open_region("pool");
    if (region == nullptr) region = thread.node.create_region("pool", 64 * KiB, medium);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    auto receives = thread.endpoint.create_receive_queue(2);
    for (std::uint64_t id = 0; id < 2; ++id) {
      receives->post(memory.local(32 * KiB + id * 4 * KiB, 4 * KiB), id);
    }
    fabric::CompletionQueue completions;
    voice.say('l');
    for (int i = 0; i < connections; ++i) {
      auto request = co_await thread.endpoint.next_connection();
      auto peer = request->accept({.receive_queue = receives.get(), .completions = &completions},
                                  as_private_data(memory.key));
      voice.say('c');
      for (;;) {
        const auto message = co_await completions.next();
        if (message.status != Status::success) {
          EXPECT_EQ(message.status, Status::disconnected);
          break;
        }
        const auto answer = memory.local(48 * KiB, 8);
        static_cast<void>(co_await peer->send(answer));
        receives->post(memory.local(32 * KiB + message.buffer_id * 4 * KiB, 4 * KiB),
                       message.buffer_id);
      }
      voice.say('d');
    }
  };
}

struct Client {
  explicit Client(Thread& on) : thread(on) {}
  Thread& thread;
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;
  RemoteKey key;

  Task<> connect() {
    region = thread.node.create_region("client", 64 * KiB, Medium::dram);
    memory = thread.endpoint.register_memory(*region, Access::local);
    receives = thread.endpoint.create_receive_queue(4);
    for (std::uint64_t id = 0; id < 4; ++id) post(id);
    auto connection = co_await thread.endpoint.connect(
        {0, 1}, {.receive_queue = receives.get(), .completions = &completions}, {});
    if (connection.status != Status::success) throw std::runtime_error("cannot connect");
    peer = std::move(connection.queue_pair);
    key = key_in(connection.private_data);
  }
  void post(std::uint64_t id) { receives->post(memory.local(32 * KiB + id * 64, 64), id); }

  // False when the connection is over.
  Task<bool> exchange() {
    if (!co_await peer->send(memory.local(0, 2000))) co_return false;
    const auto answer = co_await completions.next();
    if (answer.status != Status::success) co_return false;
    post(answer.buffer_id);
    co_return true;
  }
};

}  // namespace

class ShmProcesses : public testing::TestWithParam<CompletionMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, ShmProcesses,
                         testing::Values(CompletionMode::polling, CompletionMode::event),
                         [](const auto& mode) {
                           return mode.param == CompletionMode::polling ? "polling" : "event";
                         });

TEST_P(ShmProcesses, AreNodesOfOneCluster) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process server([&](const Process::Voice& voice) {
    run_node(node_of(job, 0), GetParam(), echo_server(voice, 1, Medium::pm));
  });
  Process client([&](const Process::Voice&) {
    ShmPlatform platform(node_of(job, 1));
    platform.start(1, 1, GetParam(), [&](Thread& thread) -> Task<> {
      Client me(thread);
      co_await me.connect();
      for (std::uint64_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(co_await me.exchange());
        me.region->store(0, i);
        EXPECT_TRUE(co_await me.peer->write(me.memory.local(0, 8), {me.key, 8}));
        EXPECT_EQ((co_await me.peer->fetch_and_add({me.key, 8}, 1)).old_value, i);
        EXPECT_TRUE(co_await me.peer->read(me.memory.local(8, 8), {me.key, 8}));
        EXPECT_EQ(me.region->load(8), i + 1);
      }
    });
    platform.run();
    EXPECT_GT(platform.local_node(1)->pm_writes().one_sided.stores, 0U);
  });
  EXPECT_EQ(client.exit_code(), 0);
  EXPECT_EQ(server.exit_code(), 0);
  EXPECT_FALSE(exists(directory_of(job)));
}

TEST_P(ShmProcesses, MeetAtBarriers) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const auto body = [&](NodeId node) {
    return [&, node](const Process::Voice&) {
      ShmPlatform platform(node_of(job, node, 3));
      const auto barrier = platform.create_barrier(3);
      platform.start(node, 1, GetParam(), [&](Thread&) -> Task<> {
        for (int i = 0; i < 300; ++i) co_await barrier->arrive_and_wait();
      });
      platform.run();
    };
  };
  Process first(body(0));
  Process second(body(1));
  Process third(body(2));
  EXPECT_EQ(first.exit_code(), 0);
  EXPECT_EQ(second.exit_code(), 0);
  EXPECT_EQ(third.exit_code(), 0);
}

// The initiator of WRITEs is killed again and again. What it leaves is a prefix of its operations,
// the last one possibly in part, in whole words; the target notices and serves the next one.
TEST_P(ShmProcesses, AKilledInitiatorLeavesAPrefixOfItsWrites) {
  constexpr int kTimes = 8;
  constexpr Bytes kWords = 2048;
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process server([&](const Process::Voice& voice) {
    run_node(node_of(job, 0), GetParam(), [&](Thread& thread) -> Task<> {
      auto region = thread.node.create_region("target", kWords * kWord, Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
      fabric::CompletionQueue completions;
      for (int i = 0; i < kTimes; ++i) {
        region->write(0, std::vector<std::byte>(kWords * kWord));
        auto peer = (co_await thread.endpoint.next_connection())
                        ->accept({.completions = &completions}, as_private_data(memory.key));
        while (region->load(0) < 50) co_await sleep_for(Microseconds(10));
        voice.say('k');
        EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
        std::uint64_t oldest = ~std::uint64_t{0};
        std::uint64_t newest = 0;
        for (Bytes word = 0; word < kWords; ++word) {
          oldest = std::min(oldest, region->load(word * kWord));
          newest = std::max(newest, region->load(word * kWord));
        }
        EXPECT_GE(oldest, 49U);
        EXPECT_LE(newest - oldest, 1U);
      }
    });
  });
  for (int i = 0; i < kTimes; ++i) {
    Process client([&](const Process::Voice&) {
      run_node(node_of(job, 1), GetParam(), [&](Thread& thread) -> Task<> {
        Client me(thread);
        co_await me.connect();
        for (std::uint64_t version = 1;; ++version) {
          for (Bytes word = 0; word < kWords; ++word) me.region->store(word * kWord, version);
          static_cast<void>(co_await me.peer->write(
              me.memory.local(0, static_cast<std::uint32_t>(kWords * kWord)), {me.key, 0}));
        }
      });
    });
    ASSERT_TRUE(server.hears('k'));
    client.kill();
  }
  EXPECT_EQ(server.exit_code(), 0);
}

// Senders are killed while they hold receive buffers of a queue of two: none is lost for good.
TEST_P(ShmProcesses, KilledSendersTakeNoReceiveBufferWithThem) {
  constexpr int kTimes = 12;
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process server([&](const Process::Voice& voice) {
    run_node(node_of(job, 0), GetParam(), echo_server(voice, kTimes, Medium::dram));
  });
  for (int i = 0; i < kTimes; ++i) {
    Process client([&](const Process::Voice& voice) {
      run_node(node_of(job, 1), GetParam(), [&](Thread& thread) -> Task<> {
        Client me(thread);
        co_await me.connect();
        for (int n = 0;; ++n) {
          if (!co_await me.exchange()) break;
          if (n == 20) voice.say('k');
        }
      });
    });
    ASSERT_TRUE(client.hears('k')) << "after " << i << " kills";
    client.kill();
    ASSERT_TRUE(server.hears('d'));
  }
  EXPECT_EQ(server.exit_code(), 0);
}

// The target is killed and started again as the same node: connections break, new ones are made,
// and the persistent memory is as it was.
TEST_P(ShmProcesses, AKilledTargetCanBeReplaced) {
  constexpr int kTimes = 5;
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const TemporaryDirectory pm;
  const auto serve = [&](const Process::Voice& voice) {
    ShmOptions options = node_of(job, 0);
    options.pm_directory = pm.path();
    run_node(options, GetParam(), echo_server(voice, 1, Medium::pm));
  };
  Process client([&](const Process::Voice& voice) {
    run_node(node_of(job, 1), GetParam(), [&](Thread& thread) -> Task<> {
      std::uint64_t count = 0;
      for (int life = 0; life <= kTimes; ++life) {
        Client me(thread);
        co_await me.connect();
        EXPECT_TRUE(co_await me.peer->read(me.memory.local(0, 8), {me.key, 0}));
        EXPECT_EQ(me.region->load(0), count);
        Status end = Status::success;
        for (int n = 0; end == Status::success; ++n) {
          end = (co_await me.peer->fetch_and_add({me.key, 0}, 1)).status;
          if (end == Status::success) ++count;
          if (n == 100 && life == kTimes) co_return;
          if (n == 100) voice.say('k');
        }
        // Flushed, if the death was noticed between two operations.
        EXPECT_TRUE(end == Status::retry_exceeded || end == Status::flushed) << to_string(end);
        EXPECT_FALSE(me.peer->connected());
        EXPECT_EQ((co_await me.peer->read(me.memory.local(0, 8), {me.key, 0})).status,
                  Status::flushed);
        EXPECT_EQ((co_await me.completions.next()).status, Status::disconnected);
      }
    });
  });
  for (int i = 0; i < kTimes; ++i) {
    Process server(serve);
    ASSERT_TRUE(client.hears('k')) << "life " << i;
    server.kill();
  }
  Process last(serve);
  EXPECT_EQ(client.exit_code(), 0);
  EXPECT_EQ(last.exit_code(), 0);
  EXPECT_FALSE(exists(directory_of(job)));
}

// An operation that waits for the target when it is killed ends too.
TEST_P(ShmProcesses, AnOperationUnderWayEndsWhenItsTargetIsKilled) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process server([&](const Process::Voice& voice) {
    run_node(node_of(job, 0), GetParam(), [&](Thread& thread) -> Task<> {
      auto peer = (co_await thread.endpoint.next_connection())->accept({}, as_private_data({}));
      voice.say('c');
      for (;;) co_await sleep_for(std::chrono::hours(1));
    });
  });
  Process client([&](const Process::Voice&) {
    run_node(node_of(job, 1), GetParam(), [&](Thread& thread) -> Task<> {
      Client me(thread);
      co_await me.connect();
      EXPECT_EQ((co_await me.peer->send(me.memory.local(0, 8))).status, Status::retry_exceeded);
      EXPECT_EQ((co_await me.completions.next()).status, Status::disconnected);
    });
  });
  ASSERT_TRUE(server.hears('c'));
  server.kill();
  EXPECT_EQ(client.exit_code(), 0);
}

// A node that takes the place of a dead one in the second run of the others takes part in that run.
TEST_P(ShmProcesses, ANewProcessJoinsTheRunOfTheOthers) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process steady([&](const Process::Voice& voice) {
    ShmPlatform platform(node_of(job, 0));
    platform.start(0, 1, GetParam(), [](Thread&) -> Task<> { co_return; });
    platform.run();
    platform.start(0, 1, GetParam(), [&](Thread& thread) -> Task<> {
      voice.say('2');
      co_await echo_server(voice, 1, Medium::dram)(thread);
    });
    platform.run();
  });
  const auto serve = [&](const Process::Voice& voice) {
    ShmPlatform platform(node_of(job, 1));
    platform.run();
    voice.say('1');
    for (;;) platform.run();
  };
  {
    Process victim(serve);
    ASSERT_TRUE(victim.hears('1'));
    ASSERT_TRUE(steady.hears('2'));
    victim.kill();
  }
  Process successor([&](const Process::Voice&) {
    ShmPlatform platform(node_of(job, 1));
    platform.start_service(1, 2, GetParam(), [](Thread& thread) -> Task<> {
      for (;;) (co_await thread.endpoint.next_connection())->reject();
    });
    platform.start(1, 1, GetParam(), [](Thread& thread) -> Task<> {
      Client me(thread);
      co_await me.connect();
      EXPECT_TRUE(co_await me.exchange());
    });
    platform.run();  // not over before the other node's second run is
  });
  EXPECT_EQ(successor.exit_code(), 0);
  EXPECT_EQ(steady.exit_code(), 0);
}

// --- several processes of one machine -----------------------------------------------------------

// Two processes that are told so share the persistent memory of a machine: the death of one leaves
// the other, and what was stored.
TEST_P(ShmProcesses, ProcessesOfAMachineShareItsPersistentMemory) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const auto of_machine = [&](NodeId node) {
    ShmOptions options = node_of(job, node, 3);
    options.machines = {0, 0, 2};
    return options;
  };
  constexpr Bytes kPool = 64 * KiB;
  const auto elsewhere = [&](const Process::Voice&) {
    run_node(of_machine(2), GetParam(), [](Thread& thread) -> Task<> {
      EXPECT_EQ(thread.node.open_region("pool"), nullptr);
      co_return;
    });
  };
  Process other_machine(elsewhere);
  Process victim([&](const Process::Voice& voice) {
    run_node(of_machine(0), GetParam(), [&](Thread& thread) -> Task<> {
      EXPECT_EQ(thread.node.machine(), 0U);
      const auto pool = thread.node.create_region("pool", kPool, Medium::pm);
      pool->store(8, 7);
      voice.say('s');
      for (;;) co_await sleep_for(std::chrono::hours(1));
    });
  });
  ASSERT_TRUE(victim.hears('s'));
  Process neighbor([&](const Process::Voice& voice) {
    run_node(of_machine(1), GetParam(), [&](Thread& thread) -> Task<> {
      EXPECT_EQ(thread.node.machine(), 0U);
      const auto pool = thread.node.open_region("pool");
      EXPECT_NE(pool, nullptr);
      if (pool == nullptr) co_return;
      EXPECT_EQ(pool->load(8), 7U);
      voice.say('o');
      // Until the successor of the dead process has stored.
      while (pool->load(16) == 0) co_await yield();
      EXPECT_EQ(pool->load(16), 8U);
    });
  });
  ASSERT_TRUE(neighbor.hears('o'));
  victim.kill();
  Process successor([&](const Process::Voice&) {
    run_node(of_machine(0), GetParam(), [&](Thread& thread) -> Task<> {
      const auto pool = thread.node.open_region("pool");
      EXPECT_NE(pool, nullptr);
      if (pool != nullptr) pool->store(16, pool->load(8) + 1);
      co_return;
    });
  });
  EXPECT_EQ(successor.exit_code(), 0);
  EXPECT_EQ(neighbor.exit_code(), 0);
  EXPECT_EQ(other_machine.exit_code(), 0);
}

// A producer is killed wherever it is, in the middle of a push of many lines perhaps. What the
// consumer pops is whole and in order, of one producer after the other.
TEST_P(ShmProcesses, AKilledProducerLeavesTheRingReadable) {
  constexpr std::uint64_t kLives = 5;
  constexpr std::uint64_t kPushes = 100;  // at least, of each
  using Message = std::array<std::uint64_t, 4096 / sizeof(std::uint64_t)>;
  constexpr RingShape kRing{.slots = 3, .message_size = sizeof(Message)};
  const TemporaryJob temporary;
  const auto of_machine = [&](NodeId node) {
    ShmOptions options = node_of(temporary.name(), node);
    options.machines = {0, 0};
    return options;
  };
  const auto word_of = [](std::uint64_t life, std::uint64_t number) { return life << 32 | number; };
  Process consumer([&](const Process::Voice& voice) {
    run_node(of_machine(1), GetParam(), [&](Thread& thread) -> Task<> {
      const auto ring = rings_of(thread.node).open_consumer("ring", kRing);
      std::uint64_t life = 0;
      std::uint64_t number = 0;
      while (life + 1 < kLives || number < kPushes) {
        Message message;
        co_await ring->pop(std::as_writable_bytes(std::span(message)));
        if (message.front() == word_of(life + 1, 0)) {
          ++life;
          number = 0;
        }
        Message expected;
        expected.fill(word_of(life, number));
        EXPECT_EQ(message, expected);
        if (++number == kPushes) voice.say('m');
      }
    });
  });
  for (std::uint64_t life = 0; life < kLives; ++life) {
    Process producer([&](const Process::Voice&) {
      run_node(of_machine(0), GetParam(), [&](Thread& thread) -> Task<> {
        const auto ring = rings_of(thread.node).open_producer("ring", kRing);
        for (std::uint64_t number = 0;; ++number) {
          Message message;
          message.fill(word_of(life, number));
          co_await ring->push(std::as_bytes(std::span(message)));
        }
      });
    });
    ASSERT_TRUE(consumer.hears('m'));
    producer.kill();
  }
  EXPECT_EQ(consumer.exit_code(), 0);
}

}  // namespace perdura::shm_test
