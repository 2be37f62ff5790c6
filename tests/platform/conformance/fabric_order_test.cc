// In what order operations of one connection take effect, and that many may be under way.
#include <deque>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::RdmaOperation;
using fabric::ReceiveCompletion;
using fabric::Status;

TEST_P(FabricOrder, AFlagWrittenAfterItsDataIsSeenAfterThem) {
  constexpr std::uint64_t kRounds = 500;
  connected(
      [](Side& server) -> Task<> {
        for (std::uint64_t round = 1; round <= kRounds; ++round) {
          while (server.region->load(0) != round) co_await sleep_for(Nanoseconds(100));
          EXPECT_EQ(contents(*server.region, 64, 200), pattern(200, static_cast<unsigned>(round)));
          server.region->store(8, round);  // the client may go on
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (std::uint64_t round = 1; round <= kRounds; ++round) {
          client.region->write(64, pattern(200, static_cast<unsigned>(round)));
          client.region->store(0, round);
          auto data = client.queue_pair->write(client.local(64, 200), client.there + 64);
          auto flag = client.queue_pair->write(client.local(0, 8), client.there);
          data.post();
          flag.post();
          EXPECT_TRUE(co_await data);
          EXPECT_TRUE(co_await flag);
          do {
            EXPECT_TRUE(co_await client.queue_pair->read(client.local(512, 8), client.there + 8));
          } while (client.region->load(512) != round);
        }
        co_await client.meet();
      });
}

TEST_P(FabricOrder, AMessageIsReceivedAfterTheDataWrittenBeforeIt) {
  constexpr unsigned kRounds = 300;
  connected(
      [](Side& server) -> Task<> {
        for (unsigned round = 0; round < kRounds; ++round) {
          const ReceiveCompletion message = co_await server.completions.next();
          // Two slots take turns, so that the next round's WRITE does not disturb the comparison.
          EXPECT_EQ(contents(*server.region, round % 2 * 1024, 500), pattern(500, round));
          server.post_receive(message.buffer_id);
          EXPECT_TRUE(co_await server.queue_pair->send(server.local(4096, 0)));
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (unsigned round = 0; round < kRounds; ++round) {
          client.region->write(0, pattern(500, round));
          auto data =
              client.queue_pair->write(client.local(0, 500), client.there + round % 2 * 1024);
          auto message = client.queue_pair->send(client.local(1024, 8));
          data.post();
          message.post();
          EXPECT_TRUE(co_await message);
          EXPECT_TRUE(co_await data);
          const ReceiveCompletion answer = co_await client.completions.next();
          client.post_receive(answer.buffer_id);
        }
        co_await client.meet();
      });
}

TEST_P(FabricOrder, AReadSeesEarlierWritesOfItsConnection) {
  with_idle_server([](Side& client) -> Task<> {
    for (unsigned round = 0; round < 200; ++round) {
      client.region->write(0, pattern(333, round));
      auto write = client.queue_pair->write(client.local(0, 333), client.there + round);
      auto read = client.queue_pair->read(client.local(1024, 333), client.there + round);
      write.post();
      read.post();
      EXPECT_TRUE(co_await read);
      EXPECT_TRUE(co_await write);
      EXPECT_EQ(contents(*client.region, 1024, 333), pattern(333, round));
    }
  });
}

TEST_P(FabricOrder, MessagesArriveInTheOrderSent) {
  PERDURA_NEEDS(write_with_immediate);
  constexpr std::uint32_t kCount = 1000;
  connected(
      [](Side& server) -> Task<> {
        for (std::uint32_t i = 0; i < kCount; ++i) {
          const ReceiveCompletion message = co_await server.completions.next();
          if (i % 3 == 0) {
            EXPECT_EQ(message.immediate, i);
          } else {
            EXPECT_EQ(text_of(message.buffer), std::to_string(i));
          }
          server.post_receive(message.buffer_id);
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (std::uint32_t i = 0; i < kCount; ++i) {
          const std::string text = std::to_string(i);
          client.region->write(0, bytes_of(text));
          if (i % 3 == 0) {
            EXPECT_TRUE(co_await client.queue_pair->write_with_immediate(client.local(0, 4),
                                                                         client.there, i));
          } else {
            EXPECT_TRUE(co_await client.queue_pair->send(
                client.local(0, static_cast<std::uint32_t>(text.size()))));
          }
        }
        co_await client.meet();
      });
}

TEST_P(FabricOrder, AReadSeesAnEarlierAtomic) {
  PERDURA_NEEDS(atomics);
  with_idle_server([](Side& client) -> Task<> {
    RdmaOperation add = client.queue_pair->fetch_and_add(client.there, 5);
    add.post();
    EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 8), client.there));
    EXPECT_EQ(client.region->load(0), 5U);
    EXPECT_TRUE(co_await add);
  });
}

TEST_P(FabricOrder, AnAtomicTakesEffectBehindEarlierWrites) {
  PERDURA_NEEDS(atomics);
  constexpr std::uint32_t kSize = 8 * KiB;
  with_idle_server([](Side& client) -> Task<> {
    int missed = 0;
    for (std::uint64_t round = 1; round <= 50; ++round) {
      client.region->store(kSize - kWord, 100 * round);
      auto write = client.queue_pair->write(client.local(0, kSize), client.there);
      auto add = client.queue_pair->fetch_and_add(client.there + (kSize - kWord), 1);
      write.post();
      add.post();
      const auto added = co_await add;
      missed += added.old_value == 100 * round ? 0 : 1;
      EXPECT_TRUE(co_await write);
    }
    EXPECT_EQ(missed, 0);
  });
}

// WRITEs alone, and with an atomic between them and the FLUSH.
TEST_P(FabricOrder, BehindAFlushEarlierWritesAndAtomicsAreVisible) {
  PERDURA_NEEDS(atomics);
  constexpr unsigned kRounds = 400;
  constexpr std::uint32_t kSize = 8 * KiB;
  connected(
      [](Side& server) -> Task<> {
        if (!server.thread.endpoint.capabilities().flush) co_return;
        int missed = 0;
        for (unsigned round = 1; round <= kRounds; ++round) {
          co_await server.meet();
          const auto found = contents(*server.region, kCacheLine, kSize);
          missed += found == pattern(kSize, round) ? 0 : 1;
          missed += server.region->load(0) == round / 2 ? 0 : 1;
          co_await server.meet();
        }
        EXPECT_EQ(missed, 0) << "of a WRITE or an atomic";
      },
      [](Side& client) -> Task<> {
        if (!client.thread.endpoint.capabilities().flush) co_return;
        for (unsigned round = 1; round <= kRounds; ++round) {
          client.region->write(0, pattern(kSize, round));
          auto write = client.queue_pair->write(client.local(0, kSize), client.there + kCacheLine);
          auto add = client.queue_pair->fetch_and_add(client.there, 1);
          auto flush = client.queue_pair->flush(client.there, kSize + kCacheLine,
                                                fabric::Placement::global_visibility);
          write.post();
          if (round % 2 == 0) add.post();
          EXPECT_TRUE(co_await flush);
          co_await client.meet();
          EXPECT_TRUE(co_await write);
          if (round % 2 == 0) {
            const auto added = co_await add;
            EXPECT_TRUE(added);
          }
          co_await client.meet();
        }
      });
}

// Whatever two operations are, when the second one has completed so has the first.
TEST_P(FabricOrder, OperationsCompleteInTheOrderPosted) {
  using fabric::Opcode;
  constexpr std::uint32_t kLong = 16 * KiB;
  with_idle_server([](Side& client) -> Task<> {
    const auto can = client.thread.endpoint.capabilities();
    std::vector<fabric::WorkRequest> kinds;
    for (const Opcode opcode : {Opcode::read, Opcode::write}) {
      for (const std::uint32_t length : {8U, kLong}) {
        kinds.push_back(
            {.opcode = opcode, .local = client.local(0, length), .remote = client.there});
      }
    }
    kinds.push_back({.opcode = Opcode::send, .local = client.local(0, 8)});
    if (can.atomics) kinds.push_back({.opcode = Opcode::fetch_and_add, .remote = client.there});
    if (can.flush) {
      kinds.push_back({.opcode = Opcode::flush, .remote = client.there, .flush_length = kLong});
    }
    const auto is_send = [](const fabric::WorkRequest& kind) {
      return kind.opcode == Opcode::send;
    };
    std::uint32_t sent = 0;
    for (const fabric::WorkRequest& one : kinds) {
      for (const fabric::WorkRequest& other : kinds) {
        // The server posts no more buffers.
        sent += (is_send(one) ? 1U : 0U) + (is_send(other) ? 1U : 0U);
        if (sent > kReceiveDepth) continue;
        RdmaOperation first(*client.queue_pair, one);
        RdmaOperation second(*client.queue_pair, other);
        first.post();
        second.post();
        EXPECT_TRUE(co_await second) << to_string(other.opcode);
        const bool in_order = first.await_ready();
        EXPECT_TRUE(in_order) << to_string(other.opcode) << " has completed, "
                              << to_string(one.opcode) << " before it has not";
        EXPECT_TRUE(co_await first) << to_string(one.opcode);
        if (!in_order) co_return;
      }
    }
  });
}

TEST_P(FabricOrder, OperationsMayBeAwaitedInAnyOrder) {
  PERDURA_NEEDS(atomics);
  with_idle_server([](Side& client) -> Task<> {
    std::deque<RdmaOperation> adds;
    for (int i = 0; i < 20; ++i) {
      adds.emplace_back(
              *client.queue_pair,
              fabric::WorkRequest{
                  .opcode = fabric::Opcode::fetch_and_add, .remote = client.there, .operand = 1})
          .post();
    }
    for (std::size_t i = adds.size(); i-- > 0;) {
      RdmaOperation& add = adds[i];
      EXPECT_EQ((co_await add).old_value, i);
    }
  });
}

TEST_P(FabricOrder, OperationsBeyondTheSendDepthWaitInLine) {
  PERDURA_NEEDS(atomics);
  PairOptions options;
  options.send_depth = 2;
  with_idle_server(options, [](Side& client) -> Task<> {
    std::deque<RdmaOperation> adds;
    for (int i = 0; i < 100; ++i) {
      adds.emplace_back(
              *client.queue_pair,
              fabric::WorkRequest{
                  .opcode = fabric::Opcode::fetch_and_add, .remote = client.there, .operand = 1})
          .post();
    }
    std::uint64_t expected = 0;
    for (RdmaOperation& add : adds) EXPECT_EQ((co_await add).old_value, expected++);
  });
}

TEST_P(FabricOrder, ManyTasksOfAThreadShareAConnection) {
  constexpr int kTasks = 8;
  constexpr int kEach = 200;
  with_idle_server([](Side& client) -> Task<> {
    int running = kTasks;
    for (int i = 0; i < kTasks; ++i) {
      client.thread.executor.spawn([](Side* side, int* left, Bytes slot) -> Task<> {
        for (std::uint64_t n = 1; n <= kEach; ++n) {
          side->region->store(slot, n);
          EXPECT_TRUE(co_await side->queue_pair->write(side->local(slot, 8), side->there + slot));
          EXPECT_TRUE(
              co_await side->queue_pair->read(side->local(slot + 8, 8), side->there + slot));
          EXPECT_EQ(side->region->load(slot + 8), n);
        }
        --*left;
      }(&client, &running, static_cast<Bytes>(i) * 64));
    }
    while (running != 0) co_await sleep_for(Microseconds(1));
  });
}

// A task that never has to wait for the network does not keep the others of its thread from
// running.
TEST_P(FabricOrder, ABusyTaskLeavesTimeToOthers) {
  with_idle_server([](Side& client) -> Task<> {
    bool stop = false;
    client.thread.executor.spawn([](bool* flag) -> Task<> {
      co_await sleep_for(Microseconds(50));
      *flag = true;
    }(&stop));
    while (!stop) {
      EXPECT_TRUE(co_await client.queue_pair->read(client.local(0, 8), client.there));
    }
  });
}

}  // namespace perdura::conformance
