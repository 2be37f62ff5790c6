// A client that takes no replies costs the shard a bounded number of them, and then its connection;
// others go on.
#include <gtest/gtest.h>

#include "rpc/connect.h"
#include "systems/mcas/protocol/messages.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;
using test::pools_system;

constexpr std::uint32_t kDepth = 4;
constexpr std::uint64_t kManyRequests = 10'000;

class Silent : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, Silent, testing::Values("sim", "shm"),
                         [](const auto& platform) { return platform.param; });

TEST_P(Silent, AClientWithoutReceiveBuffersLosesItsConnectionAlone) {
  const objects::Config config{
      .memory = MiB, .sessions = 2, .parameters = {{"queue_depth", std::uint64_t{kDepth}}}};
  const auto platform = perdura::test::make_platform(GetParam(), 3);
  platform->start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto shard = pools_system().open(thread, "shard", config);
    co_await shard->serve();
  });
  const auto barrier = std::shared_ptr<Platform::Barrier>(platform->create_barrier(2));
  std::uint64_t taken = 0;
  platform->start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("request", 64, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    const auto receives = thread.endpoint.create_receive_queue(1);
    fabric::CompletionQueue completions;
    auto connection =
        co_await rpc::connect(thread.endpoint, "the shard", {0, 0}, {receives.get(), &completions},
                              rpc::bytes_of(Hello{kProtocolVersion}));
    co_await barrier->arrive_and_wait();
    const fabric::LocalBuffer message = memory.local(0, sizeof(Request));
    for (; taken < kManyRequests; ++taken) {
      const Request request{.kind = RequestKind::statistics,
                            .id = static_cast<std::uint32_t>(taken % kDepth)};
      rpc::write_message(message.bytes(), request);
      if (!co_await connection.queue_pair->send(message)) break;
    }
    co_await barrier->arrive_and_wait();
  });
  platform->start(2, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto session = co_await pools_system().connect(thread, {0, 0}, config);
    const auto pool = *co_await session->create_pool("pool", MiB, {});
    EXPECT_TRUE(co_await pool->put(as_key("key"), as_key("value"), {}));
    co_await barrier->arrive_and_wait();
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(co_await pool->get(as_key("key")));
    co_await barrier->arrive_and_wait();
    EXPECT_TRUE(co_await pool->get(as_key("key")));
    EXPECT_EQ((co_await session->statistics())->sessions, 1U) << "the other one has ended";
  });
  platform->run();
  // In line and under way at the shard, and in its receive buffers.
  EXPECT_LE(taken, 8 * kDepth);
}

}  // namespace
}  // namespace perdura::systems::mcas
