// What a thread with faults does to a client that knows nothing of it, on every platform where the
// fault is possible.
#include "platform/faults/faulty_thread.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::faults {
namespace {

using fabric::Access;
using fabric::CompletionQueue;
using fabric::ReceiveCompletion;
using fabric::RemoteKey;
using fabric::Status;

constexpr std::uint64_t kFarewell = 1'000'000;

// A server that notes what it is sent (the first word) and whose connections end, and offers
// memory. It hangs up on who says farewell once it has seen as much as it is told to expect.
struct Server {
  std::size_t expected_messages = 0;
  int expected_ends = 0;
  std::vector<std::uint64_t> received;
  std::vector<Time> times;
  int ended = 0;
  std::uint64_t last_write = 0;  // the word at 0, whenever a message comes

  void start(Platform& platform) {
    platform.start_service(0, 0, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("server", 64 * KiB, pmem::Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
      const auto queue = thread.endpoint.create_receive_queue(32);
      for (std::uint64_t i = 0; i < 32; ++i) queue->post(memory.local(4096 + i * 64, 64), i);
      CompletionQueue completions;
      std::vector<std::unique_ptr<fabric::QueuePair>> clients;
      thread.executor.spawn(accept(thread, queue.get(), completions, clients, memory.key));
      fabric::QueuePair* leaving = nullptr;
      for (;;) {
        const ReceiveCompletion message = co_await completions.next();
        if (message.status != Status::success) {
          ++ended;
        } else {
          const std::uint64_t word =
              message.immediate ? *message.immediate : region->load(message.buffer.offset);
          queue->post(memory.local(4096 + message.buffer_id * 64, 64), message.buffer_id);
          last_write = region->load(0);
          if (word == kFarewell) {
            leaving = message.queue_pair;
          } else {
            received.push_back(word);
            times.push_back(thread.executor.now());
          }
        }
        if (leaving != nullptr && received.size() >= expected_messages && ended >= expected_ends) {
          std::erase_if(clients, [&](const auto& client) { return client.get() == leaving; });
          leaving = nullptr;
        }
      }
    });
  }

 private:
  static Task<> accept(Thread& thread, fabric::ReceiveQueue* queue, CompletionQueue& completions,
                       std::vector<std::unique_ptr<fabric::QueuePair>>& clients, RemoteKey key) {
    for (;;) {
      const auto request = co_await thread.endpoint.next_connection();
      clients.push_back(request->accept({queue, &completions}, std::as_bytes(std::span(&key, 1))));
    }
  }
};

struct Client {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  RemoteKey key;

  static Task<std::unique_ptr<Client>> connect(Thread& thread) {
    auto self = std::make_unique<Client>();
    self->region = thread.node.create_region("client", 64 * KiB, pmem::Medium::dram);
    self->memory = thread.endpoint.register_memory(*self->region, Access::local);
    auto connection = co_await thread.endpoint.connect({0, 0}, {nullptr, &self->completions}, {});
    self->queue_pair = std::move(connection.queue_pair);
    std::memcpy(&self->key, connection.private_data.data(), sizeof self->key);
    co_return self;
  }
  // A message that is this number, in a buffer of its own.
  fabric::LocalBuffer message(std::uint64_t number) {
    const Bytes at = number % 512 * 64;
    region->store(at, number);
    return memory.local(at, kWord);
  }
};

using Body = std::function<Task<>(FaultyThread&, Client&)>;

// Runs `body` on a thread with this plan; returns what the server has seen afterwards, which is as
// many messages and ends of connections as are expected, or more.
Server run(const std::string& platform_name, const FaultPlan& plan, Body body,
           std::size_t expected_messages = 0, int expected_ends = 0) {
  Server server;
  server.expected_messages = expected_messages;
  server.expected_ends = expected_ends;
  const auto platform = perdura::test::make_platform(platform_name, 2);
  server.start(*platform);
  auto* sim = dynamic_cast<perdura::sim::SimPlatform*>(platform.get());
  Death death;
  if (sim != nullptr) {
    death = [sim](Picoseconds after) {
      sim->at(sim->engine().now() + after, [sim] { sim->kill(1); });
    };
  }
  const auto start = plan.die_at == 0 ? &Platform::start : &Platform::start_service;
  std::invoke(start, *platform, 1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    FaultyThread faulty(thread, plan, death);
    const auto client = co_await Client::connect(faulty.thread());
    co_await body(faulty, *client);
    const auto last = co_await Client::connect(thread);
    EXPECT_TRUE(co_await last->queue_pair->send(last->message(kFarewell)));
    EXPECT_EQ((co_await last->completions.next()).status, Status::disconnected);
  });
  if (plan.die_at != 0) {
    platform->start(0, 9, CompletionMode::polling,
                    [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(5)); });
  }
  platform->run();
  return server;
}

class Faulty : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Faulty, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& subject) { return subject.param; });

TEST_P(Faulty, WithoutFaultsNothingIsDifferent) {
  const Server server = run(
      GetParam(), {},
      [](FaultyThread& faulty, Client& client) -> Task<> {
        for (std::uint64_t i = 1; i <= 10; ++i) {
          EXPECT_TRUE(co_await client.queue_pair->send(client.message(i)));
        }
        EXPECT_EQ(faulty.counts(), (FaultCounts{10, 0, 0, 0}));
        EXPECT_TRUE(client.queue_pair->connected());
        EXPECT_EQ(client.queue_pair->peer(), (fabric::Address{0, 0}));
      },
      10);
  EXPECT_EQ(server.received, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_P(Faulty, AnOperationBreaksItsConnection) {
  const Server server = run(
      GetParam(), {.lose_at = 3},
      [](FaultyThread& faulty, Client& client) -> Task<> {
        auto first = client.queue_pair->send(client.message(1));
        EXPECT_TRUE(co_await first);
        auto second = client.queue_pair->send(client.message(2));
        auto third = client.queue_pair->send(client.message(3));
        auto fourth = client.queue_pair->send(client.message(4));
        second.post();
        third.post();
        fourth.post();
        // On shm the second may be over before the third breaks the connection.
        co_await second;
        EXPECT_EQ((co_await third).status, Status::flushed);
        EXPECT_EQ((co_await fourth).status, Status::flushed);
        EXPECT_FALSE(client.queue_pair->connected());
        const ReceiveCompletion end = co_await client.completions.next();
        EXPECT_EQ(end.status, Status::disconnected);
        EXPECT_EQ(end.queue_pair, client.queue_pair.get());
        EXPECT_EQ(faulty.counts().lost, 1U);
        // A new connection works.
        const auto again = co_await Client::connect(faulty.thread());
        EXPECT_TRUE(co_await again->queue_pair->send(again->message(5)));
      },
      2, 2);
  EXPECT_EQ(server.ended, 2);
  ASSERT_GE(server.received.size(), 2U);
  EXPECT_EQ(server.received.front(), 1U);
  EXPECT_EQ(server.received.back(), 5U);
  for (const std::uint64_t lost : {3, 4}) {
    EXPECT_EQ(std::count(server.received.begin(), server.received.end(), lost), 0);
  }
}

TEST_P(Faulty, ALostConnectionCanBeAskedFor) {
  const Server server = run(
      GetParam(), {},
      [](FaultyThread& faulty, Client& client) -> Task<> {
        faulty.lose_connections();
        EXPECT_EQ((co_await client.queue_pair->send(client.message(1))).status, Status::flushed);
      },
      0, 1);
  EXPECT_TRUE(server.received.empty());
  EXPECT_EQ(server.ended, 1);
}

TEST_P(Faulty, AHeldMessageIsLateAndHoldsUpWhatIsBehindIt) {
  const FaultPlan plan{.hold = 1, .held = {Microseconds(300), Microseconds(300)}};
  const Server server = run(
      GetParam(), plan,
      [](FaultyThread& faulty, Client& client) -> Task<> {
        const Time start = faulty.thread().executor.now();
        client.region->store(0, 77);
        auto write = client.queue_pair->write(client.memory.local(0, kWord), {client.key, 0});
        EXPECT_TRUE(co_await write);
        EXPECT_LT(faulty.thread().executor.now() - start, Microseconds(300)) << "no message";
        auto send = client.queue_pair->send(client.message(1));
        client.region->store(8 * 1024, 78);
        auto behind =
            client.queue_pair->write(client.memory.local(8 * 1024, kWord), {client.key, 0});
        send.post();
        behind.post();
        EXPECT_TRUE(co_await behind);
        EXPECT_GE(faulty.thread().executor.now() - start, Microseconds(300));
        EXPECT_TRUE(co_await send);
        EXPECT_EQ(faulty.counts().held, 1U);
      },
      1);
  EXPECT_EQ(server.received, std::vector<std::uint64_t>{1});
}

TEST_P(Faulty, HeldMessagesKeepTheirOrderAndTheInlinedOnesTheirData) {
  const FaultPlan plan{.seed = 3, .hold = 0.5, .held = {Microseconds(1), Microseconds(40)}};
  const Server server = run(
      GetParam(), plan,
      [](FaultyThread& faulty, Client& client) -> Task<> {
        // The buffer of an inlined message may be used again at once.
        for (std::uint64_t i = 1; i <= 20; ++i) {
          client.region->store(0, i);
          client.queue_pair->post_unsignaled({.opcode = fabric::Opcode::send,
                                              .flags = {.fenced = false, .inlined = true},
                                              .local = client.memory.local(0, kWord)});
          client.region->store(0, 99);
        }
        client.region->store(0, 21);
        auto last = client.queue_pair->send(client.memory.local(0, kWord), {.inlined = true});
        last.post();
        client.region->store(0, 99);
        EXPECT_TRUE(co_await last);
        EXPECT_GT(faulty.counts().held, 4U);
        EXPECT_LT(faulty.counts().held, 17U);
      },
      21);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 1; i <= 21; ++i) expected.push_back(i);
  EXPECT_EQ(server.received, expected);
}

TEST_P(Faulty, ADuplicatedMessageArrivesTwice) {
  const FaultPlan plan{.duplicate = 1};
  const Server server = run(
      GetParam(), plan,
      [](FaultyThread& faulty, Client& client) -> Task<> {
        EXPECT_TRUE(co_await client.queue_pair->send(client.message(1)));
        EXPECT_TRUE(co_await client.queue_pair->write_with_immediate(client.memory.local(0, kWord),
                                                                     {client.key, 0}, 2));
        client.queue_pair->post_unsignaled(
            {.opcode = fabric::Opcode::send, .local = client.message(3)});
        EXPECT_TRUE(
            co_await client.queue_pair->read(client.memory.local(0, kWord), {client.key, 0}));
        EXPECT_EQ(faulty.counts().duplicated, 2U);
      },
      5);
  EXPECT_EQ(server.received, (std::vector<std::uint64_t>{1, 1, 2, 3, 3}));
}

TEST_P(Faulty, ASlowClientTakesItsTimeBeforeEveryOperation) {
  const FaultPlan plan{.slow = {Microseconds(50), Microseconds(90)}};
  run(GetParam(), plan, [](FaultyThread& faulty, Client& client) -> Task<> {
    const Time start = faulty.thread().executor.now();
    auto first = client.queue_pair->read(client.memory.local(0, kWord), {client.key, 0});
    auto second = client.queue_pair->read(client.memory.local(0, kWord), {client.key, 0});
    first.post();
    second.post();
    EXPECT_TRUE(co_await first);
    EXPECT_GE(faulty.thread().executor.now() - start, Microseconds(50));
    EXPECT_TRUE(co_await second);
    EXPECT_GE(faulty.thread().executor.now() - start, Microseconds(100)) << "one after the other";
    faulty.enable(false);
    EXPECT_TRUE(co_await client.queue_pair->read(client.memory.local(0, kWord), {client.key, 0}));
  });
}

// The server's end can be the one with faults.
TEST_P(Faulty, AnAcceptedConnectionIsFaultyToo) {
  const auto platform = perdura::test::make_platform(GetParam(), 2);
  platform->start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    FaultyThread faulty(thread, {.lose_at = 2});
    const auto region = thread.node.create_region("server", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    CompletionQueue completions;
    const auto request = co_await faulty.thread().endpoint.next_connection();
    EXPECT_EQ(request->from(), (fabric::Address{1, 1}));
    const auto client = request->accept({nullptr, &completions}, {});
    region->store(0, 5);
    co_await client->send(memory.local(0, kWord));
    EXPECT_EQ((co_await client->send(memory.local(0, kWord))).status, Status::flushed);
    EXPECT_EQ((co_await completions.next()).queue_pair, client.get());
    co_await sleep_for(std::chrono::seconds(100));
  });
  platform->start(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("client", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const auto queue = thread.endpoint.create_receive_queue(2);
    queue->post(memory.local(0, 64), 0);
    queue->post(memory.local(64, 64), 1);
    CompletionQueue completions;
    const auto connection =
        co_await thread.endpoint.connect({0, 0}, {queue.get(), &completions}, {});
    EXPECT_EQ((co_await completions.next()).status, Status::success);
    EXPECT_EQ(region->load(0), 5U);
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
  });
  platform->run();
}

// --- only on sim: deaths, and runs that can be replayed ----------------------------------------

std::vector<std::uint64_t> received_by_death(DeathStep when, Picoseconds after) {
  const FaultPlan plan{.die_at = 3, .die_when = when, .die_after = after};
  SCOPED_TRACE(plan.text());
  bool survived = false;
  const Server server = run("sim", plan, [&](FaultyThread&, Client& client) -> Task<> {
    for (std::uint64_t i = 1; i <= 5; ++i) co_await client.queue_pair->send(client.message(i));
    survived = true;
  });
  EXPECT_FALSE(survived);
  EXPECT_EQ(server.ended, 1);
  return server.received;
}

TEST(FaultyDeath, ComesBeforeAnOperationInItsMiddleOrBehindIt) {
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(received_by_death(DeathStep::before_post, {}), (Numbers{1, 2}));
  EXPECT_EQ(received_by_death(DeathStep::after_post, {}), (Numbers{1, 2}));
  EXPECT_EQ(received_by_death(DeathStep::after_post, Microseconds(1)), (Numbers{1, 2, 3}));
  EXPECT_EQ(received_by_death(DeathStep::at_completion, {}), (Numbers{1, 2, 3}));
}

TEST(FaultyDeath, NeedsSomebodyWhoBringsItAbout) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    EXPECT_THROW(FaultyThread(thread, {.die_at = 1}), UsageError);
    co_return;
  });
  platform->run();
}

TEST(FaultyReplay, ThePlansTextReplaysTheRunToThePicosecond) {
  auto times = [](const FaultPlan& plan) {
    return run("sim", plan,
               [](FaultyThread& faulty, Client& first) -> Task<> {
                 std::unique_ptr<Client> again;
                 Client* client = &first;
                 for (std::uint64_t i = 1; i <= 50; ++i) {
                   if (co_await client->queue_pair->send(client->message(i))) continue;
                   again = co_await Client::connect(faulty.thread());
                   client = again.get();
                 }
               })
        .times;
  };
  const FaultPlan plan{.seed = 11,
                       .lose = 0.05,
                       .hold = 0.3,
                       .held = {Microseconds(1), Microseconds(30)},
                       .duplicate = 0.2,
                       .slow = {Picoseconds(0), Microseconds(3)}};
  const std::vector<Time> first = times(plan);
  EXPECT_GT(first.size(), 40U);
  EXPECT_EQ(first, times(FaultPlan::parse(plan.text())));
  FaultPlan other = plan;
  other.seed = 12;
  EXPECT_NE(first, times(other));
}

}  // namespace
}  // namespace perdura::faults
