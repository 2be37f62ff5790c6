// Direct transfers while puts move values, or replace them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "services/objects/pending.h"
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
          .parameters = {{"first_segment", 8}, {"neighborhood", 4}, {"segments", 4}}};
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
      // Byte by byte, all at once: while one of them is transferred the next one waits.
      for (int i = 0; i < 500; ++i) {
        std::vector<objects::Pending<void>> changes;
        for (std::size_t at = 0; at < value.size(); ++at) {
          value[at] = static_cast<char>(i + static_cast<int>(at));
          region->data()[at] = static_cast<std::byte>(value[at]);
          changes.emplace_back(pool->put_direct_offset(as_key(key), at, {memory, at, 1}));
        }
        for (auto& change : changes) {
          co_await change.wait_for_completion();
          EXPECT_TRUE(change.take());
        }
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
    // Keys come and go, many at a time, in a table that is nearly full and does not grow, so that
    // items are moved all the time.
    while (writing > 0) {
      std::vector<std::string> keys;
      const bool erase = model.size() > 40;
      for (auto item = model.begin(); erase && keys.size() < 12; ++item)
        keys.push_back(item->first);
      while (keys.size() < 12) keys.push_back(std::to_string(random() % 100'000));
      std::vector<objects::Pending<void>> changes;
      for (const std::string& key : keys) {
        changes.emplace_back(erase ? pool->erase(as_key(key))
                                   : pool->put(as_key(key), as_key(key), {}));
      }
      for (std::size_t i = 0; i < keys.size(); ++i) {
        co_await changes[i].wait_for_completion();
        const auto done = changes[i].take();
        EXPECT_TRUE(done || done.error() == objects::Error::out_of_space);
        if (erase) model.erase(keys[i]);
        if (!erase && done) model[keys[i]] = keys[i];
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

// A put waits for a transfer of the same key: the memory of the old value would be free for others.
TEST(Moving, AValueThatIsReplacedIsTransferredWhole) {
  constexpr Bytes kValue = 32 * KiB;
  const objects::Config config{.memory = 4 * MiB,
                               .max_message_value = kValue,
                               .sessions = 4,
                               .parameters = {{"direct_piece", 1024}}};
  const auto platform = perdura::test::make_platform("sim", 3);
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto shard = pools_system().open(thread, "shard", config);
    co_await shard->serve();
  });
  bool reading = true;
  int different = 0;  // values that were read
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await pools_system().connect(thread, {0, 0}, config);
    const auto pool = *co_await session->create_pool("pool", MiB, {});
    const auto region = thread.node.create_region("direct", kValue, pmem::Medium::dram);
    const auto memory = *session->register_direct_memory(*region);
    std::byte last{};
    for (int i = 0; i < 300; ++i) {
      const auto length = co_await pool->get_direct(as_key("key"), {memory, 0, kValue});
      if (!length) continue;  // it is not there yet
      const std::span<const std::byte> found(region->data(), kValue);
      EXPECT_EQ(*length, kValue);
      EXPECT_EQ(std::count(found.begin(), found.end(), found[0]), static_cast<int>(kValue)) << i;
      different += found[0] == last ? 0 : 1;
      last = found[0];
    }
    reading = false;
  });
  platform->start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await pools_system().connect(thread, {0, 0}, config);
    const auto pool = *co_await session->create_pool("pool", MiB, {});
    for (char byte = 'a'; reading; byte = byte == 'z' ? 'a' : static_cast<char>(byte + 1)) {
      const std::string value(kValue, byte);
      EXPECT_TRUE(co_await pool->put(as_key("key"), as_key(value), {}));
      // Gets the memory that the old value had.
      const std::string other(kValue, static_cast<char>(byte - 32));
      EXPECT_TRUE(co_await pool->put(as_key("other"), as_key(other), {}));
    }
  });
  platform->run();
  EXPECT_GT(different, 10);
}

}  // namespace
}  // namespace perdura::systems::mcas
