// Receive queues: exhaustion, buffers that are too short, buffers shared by many connections.
#include <deque>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::ReceiveCompletion;
using fabric::Status;

TEST_P(FabricReceive, ASenderWaitsForABuffer) {
  PERDURA_NEEDS(waits_for_receiver);
  PairOptions options;
  options.receives_posted = 0;
  connected(
      options,
      [](Side& server) -> Task<> {
        co_await sleep_for(Milliseconds(2));  // the sender has found no buffer, probably
        EXPECT_FALSE(server.completions.try_next().has_value());
        // What was posted behind the stalled message must not have overtaken it.
        EXPECT_EQ(server.region->load(0), 0U);
        for (std::uint64_t id = 0; id < 3; ++id) {
          server.post_receive(id);
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(message.buffer_id, id);
          EXPECT_EQ(text_of(message.buffer), "waiting " + std::to_string(id));
        }
        co_await server.meet();
        EXPECT_EQ(server.region->load(0), 99U);
      },
      [](Side& client) -> Task<> {
        std::deque<fabric::RdmaOperation> sends;
        for (std::uint64_t i = 0; i < 3; ++i) {
          client.region->write(i * 64, bytes_of("waiting " + std::to_string(i)));
          sends
              .emplace_back(*client.queue_pair,
                            fabric::WorkRequest{.opcode = fabric::Opcode::send,
                                                .local = client.local(i * 64, 9)})
              .post();
        }
        client.region->store(1024, 99);
        EXPECT_TRUE(co_await client.queue_pair->write(client.local(1024, 8), client.there));
        for (auto& send : sends) EXPECT_TRUE(co_await send);
        EXPECT_TRUE(co_await client.queue_pair->read(client.local(2048, 8), client.there));
        co_await client.meet();
      });
}

TEST_P(FabricReceive, WriteWithImmediateWaitsForABufferToo) {
  PERDURA_NEEDS(write_with_immediate);
  PERDURA_NEEDS(waits_for_receiver);
  PairOptions options;
  options.receives_posted = 0;
  connected(
      options,
      [](Side& server) -> Task<> {
        co_await sleep_for(Milliseconds(1));
        server.post_receive(5);
        const ReceiveCompletion message = co_await server.completions.next();
        EXPECT_EQ(message.buffer_id, 5U);
        EXPECT_EQ(message.immediate, 1U);
        EXPECT_EQ(server.region->load(8), 42U);
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        client.region->store(0, 42);
        EXPECT_TRUE(co_await client.queue_pair->write_with_immediate(client.local(0, 8),
                                                                     client.there + 8, 1));
        co_await client.meet();
      });
}

TEST_P(FabricReceive, ASenderWithFiniteRetriesGivesUp) {
  if (!GetParam().gives_up) GTEST_SKIP() << "a sender always waits";
  PERDURA_NEEDS(waits_for_receiver);
  PairOptions options;
  options.receives_posted = 0;
  options.platform.receiver_not_ready_retries = 2;
  with_idle_server(options, [](Side& client) -> Task<> {
    auto send = client.queue_pair->send(client.local(0, 8));
    auto behind = client.queue_pair->write(client.local(0, 8), client.there);
    send.post();
    behind.post();
    EXPECT_EQ((co_await send).status, Status::receiver_not_ready);
    EXPECT_EQ((co_await behind).status, Status::flushed);
    EXPECT_FALSE(client.queue_pair->connected());
  });
}

TEST_P(FabricReceive, AMessageLongerThanItsBufferBreaksBothSides) {
  PERDURA_NEEDS(acknowledged);
  PairOptions options;
  options.receives_posted = 0;
  connected(
      options,
      [](Side& server) -> Task<> {
        server.post_receive(0, 32);
        co_await server.meet();
        // The responder's queue pair is in error as well: an end, with or without a word of why.
        ReceiveCompletion end = co_await server.completions.next();
        if (end.status == Status::message_too_long) end = co_await server.completions.next();
        EXPECT_EQ(end.status, Status::disconnected);
        EXPECT_FALSE(server.queue_pair->connected());
        EXPECT_EQ(contents(*server.buffers, 32, 1).front(), std::byte{0});
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        client.region->write(0, pattern(64));
        co_await client.meet();
        EXPECT_EQ((co_await client.queue_pair->send(client.local(0, 33))).status,
                  Status::message_too_long);
        EXPECT_EQ((co_await client.queue_pair->send(client.local(0, 32))).status, Status::flushed);
        co_await client.meet();
      });
}

TEST_P(FabricReceive, AMessageMayFillItsBuffer) {
  connected(
      [](Side& server) -> Task<> {
        const ReceiveCompletion message = co_await server.completions.next();
        EXPECT_EQ(message.buffer.length, kMessage);
        EXPECT_EQ(contents(*server.buffers, 0, kMessage), pattern(kMessage));
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        client.region->write(0, pattern(kMessage));
        EXPECT_TRUE(co_await client.queue_pair->send(client.local(0, kMessage)));
        co_await client.meet();
      });
}

TEST_P(FabricReceive, BuffersAreUsedAgainAndAgain) {
  PERDURA_NEEDS(waits_for_receiver);
  constexpr int kMessages = 5000;
  PairOptions options;
  options.receives_posted = 3;  // no power of two
  connected(
      options,
      [](Side& server) -> Task<> {
        for (int i = 0; i < kMessages; ++i) {
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(message.buffer_id, static_cast<std::uint64_t>(i % 3));
          EXPECT_EQ(server.buffers->load(message.buffer.offset), static_cast<std::uint64_t>(i));
          server.post_receive(message.buffer_id);
        }
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        for (int i = 0; i < kMessages; ++i) {
          client.region->store(0, static_cast<std::uint64_t>(i));
          EXPECT_TRUE(co_await client.queue_pair->send(client.local(0, 8)));
        }
        co_await client.meet();
      });
}

// One queue of buffers serves connections of several threads on several nodes: every message
// arrives once, and those of a connection in order, although all together run short of buffers all
// the time.
TEST_P(FabricReceive, ManyConnectionsShareAReceiveQueue) {
  PERDURA_NEEDS(waits_for_receiver);
  struct Shape {
    std::uint32_t clients;
    std::uint32_t buffers;
    std::uint64_t each;
  };
  // Of two clients that wait for the same buffer each has a core of its own, as has the server.
  for (const auto [initiators, buffers, each] : {Shape{4, 4, 400}, Shape{2, 1, 1500}}) {
    const auto platform = make({.node_count = 3});
    platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
      auto region = thread.node.create_region("buffers", buffers * 64, pmem::Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
      auto receives = thread.endpoint.create_receive_queue(buffers);
      for (std::uint64_t id = 0; id < buffers; ++id) receives->post(memory.local(id * 64, 64), id);
      fabric::CompletionQueue completions;
      std::vector<std::unique_ptr<fabric::QueuePair>> clients;
      for (std::uint32_t i = 0; i < initiators; ++i) {
        auto request = co_await thread.endpoint.next_connection();
        clients.push_back(
            request->accept({.receive_queue = receives.get(), .completions = &completions}, {}));
      }
      std::vector<std::uint64_t> next(initiators);
      std::uint64_t out_of_order = 0;
      for (std::uint32_t connected = initiators; connected > 0;) {
        const ReceiveCompletion message = co_await completions.next();
        if (message.status == Status::disconnected) {
          --connected;
          continue;
        }
        EXPECT_EQ(message.status, Status::success);
        std::size_t client = 0;
        while (client < initiators && clients[client].get() != message.queue_pair) ++client;
        out_of_order += region->load(message.buffer.offset) == next[client]++ ? 0 : 1;
        receives->post(memory.local(message.buffer_id * 64, 64), message.buffer_id);
      }
      EXPECT_EQ(out_of_order, 0U);
      for (std::size_t i = 0; i < initiators; ++i) EXPECT_EQ(next[i], each);
    });
    for (std::uint32_t i = 0; i < initiators; ++i) {
      const auto port = static_cast<fabric::Port>(10 + i);
      platform->start(1 + i % 2, port, mode(), [&](Thread& thread) -> Task<> {
        auto region = thread.node.create_region("client", 64, pmem::Medium::dram);
        const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
        auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
        for (std::uint64_t n = 0; n < each; ++n) {
          region->store(0, n);
          EXPECT_TRUE(co_await connection.queue_pair->send(memory.local(0, 8)));
        }
      });
    }
    platform->run();
  }
}

}  // namespace perdura::conformance
