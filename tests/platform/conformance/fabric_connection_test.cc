// Making, refusing, losing and renewing connections.
#include <deque>
#include <optional>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Address;
using fabric::Connection;
using fabric::kMaxPrivateData;
using fabric::ReceiveCompletion;
using fabric::Status;

TEST_P(FabricConnection, PrivateDataGoBothWays) {
  const auto platform = make();
  platform->start(0, 7, mode(), [&](Thread& thread) -> Task<> {
    EXPECT_EQ(thread.endpoint.address(), (Address{0, 7}));
    fabric::CompletionQueue completions;
    auto request = co_await thread.endpoint.next_connection();
    EXPECT_EQ(request->from(), (Address{1, 9}));
    EXPECT_EQ(std::vector(request->private_data().begin(), request->private_data().end()),
              bytes_of("may I?"));
    auto queue_pair = request->accept({.completions = &completions}, pattern(kMaxPrivateData, 5));
    EXPECT_EQ(queue_pair->peer(), (Address{1, 9}));
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
  });
  platform->start(1, 9, mode(), [&](Thread& thread) -> Task<> {
    const Connection connection = co_await thread.endpoint.connect({0, 7}, {}, bytes_of("may I?"));
    EXPECT_EQ(connection.status, Status::success);
    EXPECT_EQ(connection.private_data, pattern(kMaxPrivateData, 5));
    EXPECT_EQ(connection.queue_pair->peer(), (Address{0, 7}));
    EXPECT_TRUE(connection.queue_pair->connected());
  });
  platform->run();
}

TEST_P(FabricConnection, ARejectedConnectionIsNone) {
  const auto platform = make();
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    (co_await thread.endpoint.next_connection())->reject(pattern(kMaxPrivateData, 3));
    auto request = co_await thread.endpoint.next_connection();
    request.reset();  // not answered at all: that is a rejection too
    auto accepted = co_await thread.endpoint.next_connection();
    fabric::CompletionQueue completions;
    auto queue_pair = accepted->accept({.completions = &completions}, {});
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    for (int i = 0; i < 2; ++i) {
      const Connection refused = co_await thread.endpoint.connect({0, 1}, {}, {});
      EXPECT_EQ(refused.status, Status::disconnected);
      EXPECT_EQ(refused.queue_pair, nullptr);
      EXPECT_EQ(refused.private_data, i == 0 ? pattern(kMaxPrivateData, 3) : bytes_of(""))
          << "why, if it was said";
    }
    const Connection accepted = co_await thread.endpoint.connect({0, 1}, {}, {});
    EXPECT_EQ(accepted.status, Status::success);
  });
  platform->run();
}

TEST_P(FabricConnection, AConnectionToNobodyTimesOut) {
  const auto platform = make({.node_count = 2, .connection_timeout = Milliseconds(50)});
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const Time before = thread.executor.now();
    const Connection connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    EXPECT_EQ(connection.status, Status::retry_exceeded);
    EXPECT_EQ(connection.queue_pair, nullptr);
    EXPECT_GE(thread.executor.now() - before, Milliseconds(50));
  });
  platform->run();
}

TEST_P(FabricConnection, WhoConnectsMayWaitForLessThanThePlatformDoes) {
  constexpr Picoseconds kOfPlatform = std::chrono::seconds(3600);
  const auto platform = make({.node_count = 2, .connection_timeout = kOfPlatform});
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const Time before = thread.executor.now();
    const Connection connection =
        co_await thread.endpoint.connect({0, 1}, {.connection_timeout = Milliseconds(5)}, {});
    EXPECT_EQ(connection.status, Status::retry_exceeded);
    EXPECT_GE(thread.executor.now() - before, Milliseconds(5));
    EXPECT_LT(thread.executor.now() - before, kOfPlatform);
  });
  platform->run();
}

TEST_P(FabricConnection, AnAcceptorThatDoesNotAnswerIsGivenUp) {
  const auto platform = make({.node_count = 2, .connection_timeout = Milliseconds(50)});
  const auto barrier = platform->create_barrier(2);
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto late = co_await thread.endpoint.next_connection();
    co_await barrier->arrive_and_wait();
    // The initiator has gone: the connection breaks as soon as it is looked at.
    fabric::CompletionQueue completions;
    auto queue_pair = late->accept({.completions = &completions}, {});
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
    EXPECT_FALSE(queue_pair->connected());
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const Connection connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    EXPECT_EQ(connection.status, Status::retry_exceeded);
    co_await barrier->arrive_and_wait();
    co_await barrier->arrive_and_wait();
  });
  platform->run();
}

TEST_P(FabricConnection, AnInitiatorWaitsForTheListener) {
  const auto platform = make();
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    co_await sleep_for(Milliseconds(5));
    fabric::CompletionQueue completions;
    auto queue_pair =
        (co_await thread.endpoint.next_connection())->accept({.completions = &completions}, {});
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    const Connection connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    EXPECT_EQ(connection.status, Status::success);
  });
  platform->run();
}

TEST_P(FabricConnection, MessagesSentBeforeTheEndArriveBeforeIt) {
  connected(
      [](Side& server) -> Task<> {
        for (int i = 0; i < 5; ++i) {
          const ReceiveCompletion message = co_await server.completions.next();
          EXPECT_EQ(message.status, Status::success);
          EXPECT_EQ(text_of(message.buffer), std::to_string(i));
        }
        const ReceiveCompletion end = co_await server.completions.next();
        EXPECT_EQ(end.status, Status::disconnected);
        EXPECT_EQ(end.queue_pair, server.queue_pair.get());
        EXPECT_FALSE(server.queue_pair->connected());
        EXPECT_NE((co_await server.queue_pair->send(server.local(0, 8))).status, Status::success);
        EXPECT_EQ((co_await server.queue_pair->read(server.local(0, 8), server.there)).status,
                  Status::flushed);
      },
      [](Side& client) -> Task<> {
        for (int i = 0; i < 5; ++i) {
          client.region->write(0, bytes_of(std::to_string(i)));
          EXPECT_TRUE(co_await client.queue_pair->send(client.local(0, 1)));
        }
        client.queue_pair.reset();
      });
}

// Connections that end with operations of all kinds under way, each a little later than the one
// before: what has taken effect has done so when the end is reported.
TEST_P(FabricConnection, NothingOfAConnectionComesBehindItsEnd) {
  constexpr int kTimes = 40;
  constexpr std::uint32_t kSize = 16 * KiB;
  constexpr int kAtomics = 6;
  const auto platform = make();
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    int late = 0;
    for (int i = 0; i < kTimes; ++i) {
      co_await accept(&side, {});
      ReceiveCompletion end = co_await side.completions.next();
      while (end.status != Status::disconnected) {
        side.post_receive(end.buffer_id);
        end = co_await side.completions.next();
      }
      const auto found = contents(*side.region, 0, kSize + kCacheLine);
      co_await sleep_for(Microseconds(50));
      late += contents(*side.region, 0, kSize + kCacheLine) == found ? 0 : 1;
      side.queue_pair.reset();
    }
    EXPECT_EQ(late, 0) << "connections of which something came behind their end";
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    for (int i = 0; i < kTimes; ++i) {
      co_await connect(&side, {0, 1}, {});
      side.region->write(0, pattern(kSize, static_cast<unsigned>(i)));
      std::deque<fabric::RdmaOperation> operations;
      const auto post = [&](const fabric::WorkRequest& request) {
        operations.emplace_back(*side.queue_pair, request).post();
      };
      post({.opcode = fabric::Opcode::write,
            .local = side.local(0, kSize),
            .remote = side.there + kCacheLine});
      for (int n = 0; n < kAtomics && side.thread.endpoint.capabilities().atomics; ++n) {
        post({.opcode = fabric::Opcode::fetch_and_add, .remote = side.there, .operand = 1});
      }
      if (i % 2 == 0) post({.opcode = fabric::Opcode::send, .local = side.local(0, kMessage)});
      co_await sleep_for(Nanoseconds(500 * i));
      operations.clear();
      side.queue_pair.reset();
    }
  });
  platform->run();
}

TEST_P(FabricConnection, OperationsUnderWayEndInAnErrorWhenThePeerGoes) {
  PERDURA_NEEDS(waits_for_receiver);
  PairOptions options;
  options.receives_posted = 0;
  connected(
      options,
      [](Side& server) -> Task<> {
        co_await server.meet();
        server.queue_pair.reset();
      },
      [](Side& client) -> Task<> {
        auto send = client.queue_pair->send(client.local(0, 8));
        auto write = client.queue_pair->write(client.local(0, 8), client.there);
        send.post();
        write.post();
        co_await client.meet();
        const auto first = (co_await send).status;
        EXPECT_TRUE(first == Status::retry_exceeded || first == Status::flushed)
            << to_string(first);
        const auto second = (co_await write).status;
        EXPECT_TRUE(second == Status::retry_exceeded || second == Status::flushed)
            << to_string(second);
        EXPECT_EQ((co_await client.completions.next()).status, Status::disconnected);
      });
}

TEST_P(FabricConnection, AnErrorOfTheInitiatorEndsTheConnectionForBoth) {
  connected(
      [](Side& server) -> Task<> {
        EXPECT_EQ((co_await server.completions.next()).status, Status::disconnected);
        EXPECT_FALSE(server.queue_pair->connected());
        co_await server.meet();
      },
      [](Side& client) -> Task<> {
        EXPECT_EQ(
            (co_await client.queue_pair->read(client.local(0, 8), client.there + kMemory)).status,
            Status::remote_access_error);
        co_await client.meet();
      });
}

TEST_P(FabricConnection, AConnectionCanBeMadeAgain) {
  constexpr int kTimes = 50;
  const auto platform = make();
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    for (int i = 0; i < kTimes; ++i) {
      co_await accept(&side, {});
      const ReceiveCompletion message = co_await side.completions.next();
      EXPECT_EQ(text_of(message.buffer), "hello");
      side.post_receive(message.buffer_id);
      EXPECT_EQ((co_await side.completions.next()).status, Status::disconnected);
      side.queue_pair.reset();
    }
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    side.region->write(0, bytes_of("hello"));
    for (int i = 0; i < kTimes; ++i) {
      co_await connect(&side, {0, 1}, {});
      EXPECT_TRUE(co_await side.queue_pair->send(side.local(0, 5)));
      side.queue_pair.reset();
    }
  });
  platform->run();
}

TEST_P(FabricConnection, AThreadHasManyConnections) {
  PERDURA_NEEDS(waits_for_receiver);
  constexpr std::uint64_t kConnections = 130;
  const auto platform = make();
  const auto barrier = platform->create_barrier(2);
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    std::vector<std::unique_ptr<fabric::QueuePair>> all;
    for (std::uint64_t i = 0; i < kConnections; ++i) {
      co_await accept(&side, {});
      all.push_back(std::move(side.queue_pair));
    }
    for (std::uint64_t i = 0; i < kConnections; ++i) {
      const ReceiveCompletion message = co_await side.completions.next();
      const std::uint64_t which = side.buffers->load(message.buffer.offset);
      EXPECT_EQ(message.queue_pair, all.at(which).get());
      side.post_receive(message.buffer_id);
    }
    co_await barrier->arrive_and_wait();
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    prepare(side, {});
    std::vector<std::unique_ptr<fabric::QueuePair>> all;
    for (std::uint64_t i = 0; i < kConnections; ++i) {
      co_await connect(&side, {0, 1}, {});
      all.push_back(std::move(side.queue_pair));
    }
    for (std::uint64_t i = kConnections; i-- > 0;) {
      side.region->store(0, i);
      EXPECT_TRUE(co_await all[i]->send(side.local(0, 8)));
    }
    co_await barrier->arrive_and_wait();
  });
  platform->run();
}

// A thread may be both ends.
TEST_P(FabricConnection, AThreadConnectsToItself) {
  const auto platform = make({.node_count = 1});
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side server(thread);
    prepare(server, {});
    bool accepted = false;
    thread.executor.spawn([](Side* side, bool* done) -> Task<> {
      co_await accept(side, {});
      *done = true;
    }(&server, &accepted));
    const Connection connection =
        co_await thread.endpoint.connect({0, 1}, {}, pattern(sizeof(fabric::RemoteKey)));
    EXPECT_EQ(connection.status, Status::success);
    while (!accepted) co_await yield();
    server.region->write(0, bytes_of("to myself"));
    EXPECT_TRUE(co_await connection.queue_pair->send(server.local(0, 9)));
    const ReceiveCompletion message = co_await server.completions.next();
    EXPECT_EQ(text_of(message.buffer), "to myself");
  });
  platform->run();
}

}  // namespace perdura::conformance
