// Connections over TCP between processes that are killed.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "tests/platform/shm/process.h"
#include "tests/platform/tcp/over_sockets.h"

namespace perdura::shm_test {

using fabric::Access;
using fabric::RemoteKey;
using fabric::Status;
using pmem::Medium;
using test::over_sockets;

namespace {

constexpr fabric::Address kServer{0, 1};

// Accepts one connection, tells it the key of a region, and serves it until it ends.
Platform::Body server(const Process::Voice& voice) {
  return over_sockets([&voice](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("server", 64 * KiB, Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    fabric::CompletionQueue completions;
    voice.say('l');
    auto request = co_await thread.endpoint.next_connection();
    auto peer =
        request->accept({.completions = &completions}, std::as_bytes(std::span(&memory.key, 1)));
    voice.say('c');
    EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
    EXPECT_FALSE(peer->connected());
  });
}

struct Client {
  explicit Client(Thread& on)
      : thread(on),
        region(on.node.create_region("client", 64 * KiB, Medium::dram)),
        memory(on.endpoint.register_memory(*region, Access::local)) {}
  Thread& thread;
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> peer;
  fabric::RemoteAddress there;

  Task<> connect() {
    auto connection = co_await thread.endpoint.connect(kServer, {.completions = &completions}, {});
    if (connection.status != Status::success) throw std::runtime_error("cannot connect");
    peer = std::move(connection.queue_pair);
    std::memcpy(&there.key, connection.private_data.data(), sizeof there.key);
  }
};

}  // namespace

class TcpProcesses : public testing::TestWithParam<CompletionMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, TcpProcesses,
                         testing::Values(CompletionMode::polling, CompletionMode::event),
                         [](const auto& mode) {
                           return mode.param == CompletionMode::polling ? "polling" : "event";
                         });

// The connection to a killed process breaks, and what it has published leads nobody to its
// successor's place by mistake.
TEST_P(TcpProcesses, AKilledTargetCanBeReplaced) {
  constexpr int kTimes = 4;
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  const auto serve = [&](const Process::Voice& voice) {
    run_node(node_of(job, 0), GetParam(), server(voice));
  };
  Process client([&](const Process::Voice& voice) {
    run_node(node_of(job, 1), GetParam(), over_sockets([&](Thread& thread) -> Task<> {
               Client me(thread);
               for (int life = 0; life <= kTimes; ++life) {
                 co_await me.connect();
                 EXPECT_TRUE(co_await me.peer->write(me.memory.local(0, 8), me.there));
                 if (life == kTimes) break;
                 voice.say('k');
                 Status end = Status::success;
                 while (end == Status::success) {
                   end = (co_await me.peer->write(me.memory.local(0, 64 * KiB), me.there)).status;
                 }
                 EXPECT_EQ(end, Status::flushed);
                 EXPECT_FALSE(me.peer->connected());
                 EXPECT_EQ((co_await me.completions.next()).status, Status::disconnected);
               }
             }));
  });
  for (int life = 0; life < kTimes; ++life) {
    Process killed(serve);
    ASSERT_TRUE(client.hears('k')) << "life " << life;
    killed.kill();
    EXPECT_TRUE(exists(directory_of(job) + "/node-0.socket-1")) << "so it is stale";
  }
  Process last(serve);
  EXPECT_EQ(client.exit_code(), 0);
  EXPECT_EQ(last.exit_code(), 0);
  EXPECT_FALSE(exists(directory_of(job)));
}

TEST_P(TcpProcesses, AKilledInitiatorIsNoticed) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process target(
      [&](const Process::Voice& voice) { run_node(node_of(job, 0), GetParam(), server(voice)); });
  {
    Process client([&](const Process::Voice& voice) {
      run_node(node_of(job, 1), GetParam(), over_sockets([&](Thread& thread) -> Task<> {
                 Client me(thread);
                 co_await me.connect();
                 voice.say('k');
                 for (;;) co_await me.peer->write(me.memory.local(0, 64 * KiB), me.there);
               }));
    });
    ASSERT_TRUE(client.hears('k'));
    client.kill();
  }
  EXPECT_EQ(target.exit_code(), 0);
}

// An operation that waits for the target when it is killed ends too.
TEST_P(TcpProcesses, AnOperationUnderWayEndsWhenItsTargetIsKilled) {
  const TemporaryJob temporary;
  const std::string& job = temporary.name();
  Process target(
      [&](const Process::Voice& voice) { run_node(node_of(job, 0), GetParam(), server(voice)); });
  Process client([&](const Process::Voice& voice) {
    run_node(node_of(job, 1), GetParam(), over_sockets([&](Thread& thread) -> Task<> {
               Client me(thread);
               co_await me.connect();
               // The target has posted no receive buffer.
               auto send = me.peer->send(me.memory.local(0, 8));
               send.post();
               co_await yield();
               voice.say('s');
               EXPECT_EQ((co_await send).status, Status::flushed);
               EXPECT_EQ((co_await me.completions.next()).status, Status::disconnected);
             }));
  });
  ASSERT_TRUE(client.hears('s'));
  target.kill();
  EXPECT_EQ(client.exit_code(), 0);
}

}  // namespace perdura::shm_test
