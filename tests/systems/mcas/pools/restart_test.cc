// A shard's process dies and is replaced: all pools are there with what was acknowledged.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "systems/mcas/pools.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;
using test::pools_system;

objects::Config restart_config() {
  return {.memory = MiB, .max_message_value = 256, .sessions = 4, .parameters = {}};
}

// The process is killed at many moments of a history in which pools are created, filled, emptied
// and deleted.
TEST(PoolsRestart, NothingAcknowledgedIsLostWhereverTheShardDies) {
  int in_the_middle = 0;
  for (int kill = 0; kill < 100 && !testing::Test::HasFailure(); ++kill) {
    SCOPED_TRACE(testing::Message() << "kill number " << kill);
    const auto made = perdura::test::make_platform("sim", 3);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    const auto serve = [](Thread& thread) -> Task<> {
      const auto shard = pools_system().open(thread, "shard", restart_config());
      EXPECT_EQ(shard->audit(), "");
      co_await shard->serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, serve);

    using Pools = std::map<std::string, std::map<std::string, std::string>>;
    Pools acknowledged;
    Pools uncertain;  // with the operation that was under way
    bool broken = false;
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await pools_system().connect(thread, {0, 0}, restart_config());
      for (int i = 0; i < 40; ++i) {
        const std::string name = "pool " + std::to_string(i % 3);
        if (acknowledged.contains(name)) {
          uncertain.erase(name);
          if (!co_await session->delete_pool(name)) break;
          acknowledged = uncertain;
        }
        uncertain[name];
        auto pool = co_await session->create_pool(name, 256 * KiB, {.create_only = true});
        if (!pool) break;
        acknowledged = uncertain;
        for (int k = 0; k < 8; ++k) {
          const std::string key = "key " + std::to_string(k);
          const std::string value = name + key + std::to_string(i) + std::string(60, '.');
          uncertain[name][key] = value;
          if (!co_await (*pool)->put(as_key(key), as_key(value), {})) co_return void(broken = true);
          acknowledged = uncertain;
        }
        if (!co_await (*pool)->close()) break;
      }
      broken = acknowledged != uncertain;
    });
    platform.at(Time(Picoseconds(Microseconds(20)) * (kill + 1)), [&] {
      platform.kill(0);
      platform.start_service(0, 0, CompletionMode::polling, serve);
      platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        const auto session = co_await pools_system().connect(thread, {0, 0}, restart_config());
        Pools found;
        for (const std::string name : {"pool 0", "pool 1", "pool 2"}) {
          const auto pool = co_await session->open_pool(name, {});
          if (!pool) continue;
          auto& items = found[name];
          for (int k = 0; k < 8; ++k) {
            const std::string key = "key " + std::to_string(k);
            const auto value = co_await (*pool)->get(as_key(key));
            if (!value) continue;
            items[key] = {reinterpret_cast<const char*>(value->data()), value->size()};
          }
          EXPECT_EQ((co_await (*pool)->attributes())->items, items.size());
        }
        EXPECT_TRUE(found == acknowledged || found == uncertain);
      });
    });
    platform.run();
    in_the_middle += broken || acknowledged != uncertain ? 1 : 0;
  }
  EXPECT_GT(in_the_middle, 50);
}

// An index is in DRAM; that the pool has one is remembered.
TEST(PoolsRestart, AnIndexIsFilledAgain) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const Parameters parameters = Parameters::of(restart_config());
    const auto region = open_memory(thread.node, "shard", parameters);
    for (int life = 0; life < 4; ++life) {
      Pools pools(*region, parameters);
      Pool& pool = life == 0 ? **pools.create("pool", 256 * KiB) : **pools.open("pool");
      const bool has_index = life == 1 || life == 2;
      EXPECT_EQ(pool.index != nullptr, has_index);
      if (has_index) {
        const auto found = pool.index->find("", objects::Match::next, 0);
        EXPECT_EQ(pool.index->count(), 2U);
        EXPECT_TRUE(std::ranges::equal(found.key, as_key("first")));
      }
      EXPECT_EQ(pool.engine->put(as_key("second"), as_key("value")), PutOutcome::done);
      EXPECT_EQ(pool.engine->put(as_key("first"), as_key("value")), PutOutcome::done);
      pools.set_index(pool, life < 2);
      EXPECT_EQ(pools.audit(), "");
    }
    co_return;
  });
  platform->run();
}

// Also the limit of what a pool may have.
TEST(PoolsRestart, APoolKeepsItsSize) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    const Parameters parameters = Parameters::of(restart_config());
    const auto region = open_memory(thread.node, "shard", parameters);
    Bytes free = 0;
    for (int life = 0; life < 3; ++life) {
      Pools pools(*region, parameters);
      Pool& pool = life == 0 ? **pools.create("pool", 256 * KiB) : **pools.open("pool");
      EXPECT_EQ(pool.engine->statistics().capacity, 256 * KiB);
      EXPECT_TRUE(life == 0 || pool.engine->statistics().free == free);
      EXPECT_FALSE(pool.engine->reserve(256 * KiB));
      free = pool.engine->statistics().free;
    }
    co_return;
  });
  platform->run();
}

TEST(PoolsRestart, MemoryOfAnotherShapeIsRefusedInOneLine) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
    pools_system().open(thread, "shard", restart_config());
    objects::Config other = restart_config();
    other.parameters["pools"] = 7;
    std::string message;
    try {
      pools_system().open(thread, "shard", other);
    } catch (const UsageError& error) {
      message = error.what();
    }
    EXPECT_TRUE(message.starts_with("pool 'shard' was created for other sizes")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    co_return;
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::systems::mcas
