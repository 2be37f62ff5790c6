// Processes join a job one after the other. One that has only services is done with its part of the
// run at once; it must still serve those who join later.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "platform/shm/shm_platform.h"
#include "tests/platform/shm/process.h"

namespace perdura {
namespace {

TEST(ShmLateJoin, AServerWaitsForNodesThatHaveNotJoinedYet) {
  ShmOptions options;
  const shm_test::TemporaryJob job;
  options.job = job.name();
  options.node_count = 2;
  options.local_nodes = {0};
  ShmPlatform server(options);
  std::atomic<bool> serving{false};
  server.start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("words", KiB, pmem::Medium::dram);
    region->store(0, 42);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::remote_all);
    // Long after run() has found that no started thread is left on this node.
    co_await sleep_for(Milliseconds(50));
    serving = true;
    const auto request = co_await thread.endpoint.next_connection();
    const auto client = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
    co_await sleep_for(std::chrono::seconds(100));
  });
  std::thread run_server([&] { server.run(); });
  while (!serving) std::this_thread::yield();

  options.local_nodes = {1};
  ShmPlatform late(options);
  std::uint64_t word = 0;
  late.start(1, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    EXPECT_EQ(connection.status, fabric::Status::success);
    if (connection.status != fabric::Status::success) co_return;
    fabric::RemoteKey key;
    std::memcpy(&key, connection.private_data.data(), sizeof key);
    const auto region = thread.node.create_region("local", KiB, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    co_await connection.queue_pair->read(memory.local(0, 8), {key, 0});
    word = region->load(0);
  });
  late.run();
  run_server.join();
  EXPECT_EQ(word, 42U);
}

}  // namespace
}  // namespace perdura
