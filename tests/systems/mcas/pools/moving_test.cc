// Direct transfers of values that lie in entries of the table, while puts of other keys move them.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;
using test::pools_system;

objects::Config moving_config() {
  return {.memory = MiB,
          .max_message_value = 64,
          .sessions = 4,
          .parameters = {{"first_segment", 8}, {"neighborhood", 4}}};
}

TEST(Moving, ValuesThatMoveAreTransferredToWhereTheyAre) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const auto platform = perdura::test::make_platform("sim", 4);
  platform->start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const auto shard = pools_system().open(thread, "shard", moving_config());
    co_await shard->serve();
  });
  int writing = 2;
  for (NodeId node = 1; node <= 2; ++node) {
    platform->start(node, node, CompletionMode::polling, [&, node](Thread& thread) -> Task<> {
      const auto session = co_await pools_system().connect(thread, {0, 0}, moving_config());
      const auto pool = *co_await session->create_pool("pool", MiB, {});
      const auto region = thread.node.create_region("direct", KiB, pmem::Medium::dram);
      const auto memory = *session->register_direct_memory(*region);
      const std::string key = "changed in place by " + std::to_string(node);
      std::string value = "01234567";
      EXPECT_TRUE(co_await pool->put(as_key(key), as_key(value), {}));
      for (char i = 0; i < 120; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) % value.size();
        value[at] = i;
        *region->data() = static_cast<std::byte>(i);
        EXPECT_TRUE(co_await pool->put_direct_offset(as_key(key), at, {memory, 0, 1}));
        EXPECT_TRUE(co_await pool->get_direct(as_key(key), {memory, 64, 64}));
        const std::string found(reinterpret_cast<const char*>(region->data() + 64), value.size());
        EXPECT_EQ(found, value);
      }
      --writing;
    });
  }
  platform->start(3, 3, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::mt19937_64 random(seed);
    const auto session = co_await pools_system().connect(thread, {0, 0}, moving_config());
    const auto pool = *co_await session->create_pool("pool", MiB, {});
    std::map<std::string, std::string> model;
    while (writing > 0) {
      const std::string key = "other " + std::to_string(random() % 60);
      if (random() % 3 == 0) {
        EXPECT_EQ((co_await pool->erase(as_key(key))).has_value(), model.erase(key) == 1);
      } else {
        const std::string value = std::to_string(random() % 1'000'000);
        EXPECT_TRUE(co_await pool->put(as_key(key), as_key(value), {}));
        model[key] = value;
      }
    }
    for (const auto& [key, value] : model) {
      const auto got = *co_await pool->get(as_key(key));
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.data()), got.size()), value);
    }
    EXPECT_EQ((co_await pool->attributes())->items, model.size() + 2);
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::systems::mcas
