// Jobs of several processes (here: of several platforms, which share nothing but the device), where
// this host has a device.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "platform/base/error.h"
#include "platform/verbs/verbs_platform.h"

namespace perdura {
namespace {

using fabric::Access;
using fabric::Status;
using fabric::verbs::ControlListener;

class VerbsJob : public testing::Test {
 protected:
  void SetUp() override {
    try {
      const fabric::verbs::Device device({});
    } catch (const PlatformError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  // Runs both bodies, each on a platform of its own; rethrows what the first threw.
  void run(const std::function<void(VerbsPlatform&)>& server,
           const std::function<void(VerbsPlatform&)>& client) const {
    const auto listener = std::make_shared<ControlListener>();
    auto other = std::async(std::launch::async, [&] {
      VerbsPlatform platform(
          {.node_count = 2, .local_nodes = {1}, .coordinator = listener->address()});
      client(platform);
    });
    {
      VerbsPlatform platform({.node_count = 2, .local_nodes = {0}, .listener = listener});
      server(platform);
    }
    other.get();
  }
};

TEST_F(VerbsJob, MemoryOfAnotherProcessIsReached) {
  fabric::RemoteKey key;
  run(
      [&](VerbsPlatform& platform) {
        const auto barrier = platform.create_barrier(2);
        platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
          const auto region = thread.node.create_region("there", 4096, pmem::Medium::pm);
          region->store(64, 7);
          key = thread.endpoint.register_memory(*region, Access::remote_all).key;
          const auto queue_pair = (co_await thread.endpoint.next_connection())->accept({}, {});
          co_await barrier->arrive_and_wait();
          EXPECT_EQ(region->load(128), 8U);
        });
        platform.run();
      },
      [&](VerbsPlatform& platform) {
        const auto barrier = platform.create_barrier(2);
        platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
          const auto region = thread.node.create_region("here", 4096, pmem::Medium::dram);
          const auto memory = thread.endpoint.register_memory(*region, Access::local);
          const auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
          EXPECT_EQ(connection.status, Status::success);
          EXPECT_TRUE(co_await connection.queue_pair->read(memory.local(0, 8), {key, 64}));
          EXPECT_EQ(region->load(0), 7U);
          region->store(8, 8);
          EXPECT_TRUE(co_await connection.queue_pair->write(memory.local(8, 8), {key, 128}));
          EXPECT_TRUE(co_await connection.queue_pair->read(memory.local(16, 8), {key, 128}));
          // Old contents, for the accounting, were those of the other process.
          EXPECT_EQ(thread.node.pm_writes().one_sided.bits_flipped, 1U);
          co_await barrier->arrive_and_wait();
        });
        platform.run();
      });
}

TEST_F(VerbsJob, AProcessThatEndsBreaksItsConnectionsAndBarriers) {
  run(
      [&](VerbsPlatform& platform) {
        const auto barrier = platform.create_barrier(2);
        platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
          fabric::CompletionQueue completions;
          auto request = co_await thread.endpoint.next_connection();
          const auto queue_pair = request->accept({.completions = &completions}, {});
          EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
          co_await barrier->arrive_and_wait();
        });
        EXPECT_THROW(platform.run(), PlatformError);
      },
      [&](VerbsPlatform& platform) {
        platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
          const auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
          EXPECT_EQ(connection.status, Status::success);
          throw std::runtime_error("the end");
        });
        EXPECT_THROW(platform.run(), std::runtime_error);
      });
}

VerbsOptions open_job(NodeId node, std::optional<fabric::tcp::HostAndPort> listens) {
  VerbsOptions options;
  options.node_count = 2;
  options.local_nodes = {node};
  options.open = OpenMembership{.job = "open", .listens = std::move(listens)};
  return options;
}

// A server of an open job in several lives, and clients that stay, come and go.
TEST_F(VerbsJob, OfAnOpenJobAServerComesBackAndClientsComeAndGo) {
  constexpr std::uint64_t kLives = 5;
  std::atomic<std::uint16_t> port = 0;
  std::atomic<std::uint64_t> life = 0;     // of the server that is there
  std::atomic<std::uint64_t> greeted = 0;  // the last one that the client has read
  const auto serve = [&](Thread& thread, std::uint64_t mine) -> Task<> {
    const auto region = thread.node.create_region("there", 4096, pmem::Medium::pm);
    region->store(64, mine);
    const fabric::RemoteKey key = thread.endpoint.register_memory(*region, Access::remote_all).key;
    std::vector<std::unique_ptr<fabric::QueuePair>> clients;
    thread.executor.spawn([](Thread& on, fabric::RemoteKey given, auto& all) -> Task<> {
      for (;;) {
        auto request = co_await on.endpoint.next_connection();
        all.push_back(request->accept({}, std::as_bytes(std::span(&given.value, 1))));
      }
    }(thread, key, clients));
    life = mine;
    while (greeted < mine) co_await sleep_for(Milliseconds(1));
    throw std::runtime_error("the end of this life");
  };
  auto server = std::async(std::launch::async, [&] {
    for (std::uint64_t mine = 1; mine <= kLives; ++mine) {
      VerbsPlatform platform(open_job(0, fabric::tcp::HostAndPort{"127.0.0.1", port}));
      port = platform.open_job()->port();
      platform.start(0, 1, CompletionMode::event,
                     [&, mine](Thread& thread) { return serve(thread, mine); });
      EXPECT_THROW(platform.run(), std::runtime_error);
    }
  });
  while (life == 0) std::this_thread::yield();
  // Reads what the server of the life has stored; false if it is not the one that is there.
  const auto greet = [](Thread& thread, std::uint64_t expected,
                        std::unique_ptr<fabric::QueuePair>& kept) -> Task<bool> {
    const auto region = thread.node.create_region("here", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    auto connection = co_await thread.endpoint.connect({0, 1}, {}, {});
    if (connection.status != Status::success) co_return false;
    fabric::RemoteKey key;
    std::memcpy(&key.value, connection.private_data.data(), sizeof(key.value));
    const auto read = co_await connection.queue_pair->read(memory.local(0, 8), {key, 64});
    if (!read) co_return false;
    kept = std::move(connection.queue_pair);
    co_return region->load(0) == expected;
  };
  VerbsPlatform platform(open_job(1, std::nullopt));
  platform.open_job()->add_node(0, {"127.0.0.1", port});
  platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    std::unique_ptr<fabric::QueuePair> connected;
    for (std::uint64_t expected = 1; expected <= kLives; ++expected) {
      while (!co_await greet(thread, expected, connected)) co_await sleep_for(Milliseconds(1));
      // What is late, and was meant for another life, names no queue pair of this one, though all
      // count theirs from 1. The server has taken it when it has taken what comes next.
      fabric::verbs::Message late;
      late.kind = fabric::verbs::MessageKind::disconnected;
      late.from = {1, 1};
      late.to = {0, 1};
      late.to_id = 1;
      platform.open_job()->send(late);
      std::unique_ptr<fabric::QueuePair> next;
      EXPECT_TRUE(co_await greet(thread, expected, next));
      EXPECT_TRUE(connected->connected());
      greeted = expected;
      // The connection to the old life breaks, and no other with it.
      while (connected->connected()) co_await sleep_for(Milliseconds(1));
    }
  });
  platform.run();
  server.get();
  EXPECT_EQ(greeted, kLives);
  EXPECT_THROW(platform.create_barrier(1), UsageError);
}

TEST_F(VerbsJob, DevicesThatAreNotThereAreNamed) {
  try {
    const fabric::verbs::Device device({.name = "moon0"});
    FAIL() << "there is such a device";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("there is no RDMA device 'moon0'; known are: "),
              std::string::npos);
  }
  const fabric::verbs::Device known({});
  EXPECT_THROW(fabric::verbs::Device({.name = known.name(), .port = 99}), UsageError);
  EXPECT_THROW(fabric::verbs::Device({.name = known.name(), .gid_index = 9999}), PlatformError);
}

}  // namespace
}  // namespace perdura
