// Keys and values of any length up to 1 GiB, small ones in messages and others directly (MCAS,
// sections 3.1.1 and 3.2.1); one error for each that is longer; places beyond 4 GiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

#include "platform/base/error.h"
#include "systems/mcas/parameters.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using objects::Error;
using test::as_key;
using test::pools_system;

// The platform and the engine.
class Sizes : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  objects::Config config(Bytes memory) const {
    return {.memory = memory,
            .max_message_value = kLongestInMessage,
            .sessions = 1,
            .parameters = {{"engine", std::get<1>(GetParam())}, {"queue_depth", 1}, {"pools", 2}}};
  }

  // Runs a client of a shard. `body` has the memory `direct` of its node, registered.
  using Body = std::function<Task<>(objects::Session&, pmem::Region&, objects::DirectMemory)>;
  void run(const objects::Config& config, Bytes direct, const Body& body) {
    const auto platform = perdura::test::make_platform(std::get<0>(GetParam()), 2);
    platform->start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
      const auto shard = pools_system().open(thread, "shard", config);
      co_await shard->serve();
    });
    bool ended = false;
    platform->start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
      const auto session = co_await pools_system().connect(thread, {0, 0}, config);
      const auto region = thread.node.create_region("direct", direct, pmem::Medium::dram);
      const auto memory = session->register_direct_memory(*region).value();
      co_await body(*session, *region, memory);
      session->unregister_direct_memory(memory);
      ended = true;
    });
    platform->run();
    EXPECT_TRUE(ended);
  }
};
std::string combination_of(
    const testing::TestParamInfo<std::tuple<std::string, std::string>>& combination) {
  const auto& [platform, engine] = combination.param;
  return platform + (engine == "hstore" ? "Hstore" : "HstoreCc");
}
INSTANTIATE_TEST_SUITE_P(, Sizes,
                         testing::Combine(testing::Values("sim", "shm"),
                                          testing::Values("hstore", "hstore-cc")),
                         combination_of);

template <class T>
std::optional<Error> error_of(const objects::Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

// Bytes of which none is where another one would have to be: the word at each offset tells it.
std::uint64_t word_at(Bytes offset, std::uint64_t version) {
  return (offset + 1) * 0x9E3779B97F4A7C15 ^ version;
}
void fill(std::span<std::byte> bytes, std::uint64_t version) {
  for (Bytes at = 0; at + kWord <= bytes.size(); at += kWord) {
    const std::uint64_t word = word_at(at, version);
    std::memcpy(bytes.data() + at, &word, kWord);
  }
}
bool is_filled(std::span<const std::byte> bytes, std::uint64_t version) {
  for (Bytes at = 0; at + kWord <= bytes.size(); at += kWord) {
    const std::uint64_t word = word_at(at, version);
    if (std::memcmp(bytes.data() + at, &word, kWord) != 0) return false;
  }
  return true;
}
std::string long_key(Bytes length, char last) {
  std::string key(length, 'k');
  key.back() = last;
  return key;
}

// Puts, reads and changes a value of this length, and one that is a byte longer than any may be.
Task<> use_value(objects::Pool& pool, std::span<std::byte> bytes, objects::DirectMemory memory,
                 Bytes at, Bytes length) {
  const Key key = as_key("key");
  const std::span<std::byte> value = bytes.subspan(at, length);
  const objects::DirectBuffer whole{memory, at, length};
  fill(value, 1);
  EXPECT_EQ(error_of(co_await pool.put_direct(key, whole, {})), std::nullopt);
  std::fill(value.begin(), value.end(), std::byte{});
  EXPECT_EQ(co_await pool.get_direct(key, whole), length);
  EXPECT_TRUE(is_filled(value, 1));
  EXPECT_EQ((co_await pool.attributes(key))->value_length, length);
  // The last bytes alone.
  constexpr Bytes kChanged = 100'000;
  const Bytes offset = length - kChanged;
  const objects::DirectBuffer part{memory, at, kChanged};
  fill(value.first(kChanged), 2);
  EXPECT_EQ(error_of(co_await pool.put_direct_offset(key, offset, part)), std::nullopt);
  std::fill(value.begin(), value.end(), std::byte{});
  EXPECT_EQ(error_of(co_await pool.get_direct_offset(key, offset, part)), std::nullopt);
  EXPECT_TRUE(is_filled(value.first(kChanged), 2));
  EXPECT_EQ(error_of(co_await pool.get_direct_offset(key, offset + 1, part)), Error::invalid);
  EXPECT_EQ(error_of(co_await pool.put_direct_offset(key, offset + 1, part)), Error::invalid);
  // Neither by a message nor into too little memory.
  EXPECT_EQ(error_of(co_await pool.get(key)), Error::too_large);
  EXPECT_EQ(error_of(co_await pool.get_direct(key, {memory, at, length - 1})), Error::too_large);
  EXPECT_EQ(error_of(co_await pool.put(as_key("other"), value, {})), Error::too_large);
  EXPECT_EQ(error_of(co_await pool.attributes(as_key("other"))), Error::not_found);
  EXPECT_EQ((co_await pool.attributes())->items, 1U);
}

TEST_P(Sizes, ValuesOfMessagesAndLongerOnes) {
  constexpr Bytes kLongValue = 64 * MiB;
  run(config(256 * MiB), kLongValue,
      [](objects::Session& session, pmem::Region& region, objects::DirectMemory memory) -> Task<> {
        const auto pool = *co_await session.create_pool("pool", 256 * MiB, {});
        const std::span<std::byte> bytes(region.data(), kLongValue);
        co_await use_value(*pool, bytes, memory, 0, kLongValue);
        fill(bytes, 3);
        const Value longest = bytes.first(kLongestInMessage);
        EXPECT_EQ(error_of(co_await pool->put(as_key("key"), longest, {})), std::nullopt);
        const auto got = co_await pool->get(as_key("key"));
        EXPECT_TRUE(got && std::ranges::equal(*got, longest));
        EXPECT_EQ(error_of(co_await pool->put(as_key("key"), bytes.first(longest.size() + 1), {})),
                  Error::too_large);
        EXPECT_TRUE(is_filled((co_await pool->get(as_key("key"))).value(), 3));
      });
}

// The longest value, and one that is a byte longer, or finds no room.
TEST_P(Sizes, AValueOfOneGiB) {
  run(config(GiB + 96 * MiB), GiB + 4 * KiB,
      [](objects::Session& session, pmem::Region& region, objects::DirectMemory memory) -> Task<> {
        const auto pool = *co_await session.create_pool("pool", GiB + 96 * MiB, {});
        const std::span<std::byte> bytes(region.data(), GiB + 4 * KiB);
        co_await use_value(*pool, bytes, memory, 0, GiB);
        for (const char* key : {"key", "other"}) {
          EXPECT_EQ(error_of(co_await pool->put_direct(as_key(key), {memory, 0, GiB + 1}, {})),
                    Error::too_large);
          EXPECT_EQ(error_of(co_await pool->put_direct(as_key(key), {memory, 0, GiB}, {})),
                    Error::out_of_space);
        }
        EXPECT_EQ((co_await pool->attributes(as_key("key")))->value_length, GiB);
        EXPECT_EQ((co_await pool->attributes())->items, 1U);
        EXPECT_EQ(error_of(co_await pool->erase(as_key("key"))), std::nullopt);
        EXPECT_EQ(error_of(co_await pool->put_direct(as_key("other"), {memory, 0, GiB}, {})),
                  std::nullopt);
      });
}

// Two keys that differ in their last byte.
Task<> use_keys(objects::Session& session, objects::DirectMemory memory, Bytes pool_size,
                Bytes length) {
  const auto pool = *co_await session.create_pool("pool", pool_size, {});
  std::string key = long_key(length, 'a');
  EXPECT_EQ(error_of(co_await pool->put(as_key(key), as_key("value a"), {})), std::nullopt);
  EXPECT_EQ(error_of(co_await pool->put(as_key(key), as_key("value A"), {})), std::nullopt);
  key.back() = 'b';
  EXPECT_EQ(error_of(co_await pool->get(as_key(key))), Error::not_found);
  EXPECT_EQ(error_of(co_await pool->erase(as_key(key))), Error::not_found);
  EXPECT_EQ(error_of(co_await pool->put_direct(as_key(key), {memory, 0, 4096}, {})), std::nullopt);
  EXPECT_EQ((co_await pool->attributes())->items, 2U);
  EXPECT_EQ(co_await pool->get_direct(as_key(key), {memory, 0, 4096}), 4096U);
  key.back() = 'a';
  const auto got = co_await pool->get(as_key(key));
  EXPECT_TRUE(got && std::ranges::equal(*got, as_key("value A")));
  EXPECT_EQ(error_of(co_await pool->erase(as_key(key))), std::nullopt);
  EXPECT_EQ((co_await pool->attributes())->items, 1U);
}

// The shard says how long a key may be. One that is a byte longer is refused by whatever it is
// used, and nothing is sent.
TEST_P(Sizes, KeysUpToTheLimitOfTheShard) {
  for (const Bytes length : {MiB, 16 * MiB}) {
    objects::Config configured = config(128 * MiB);
    configured.parameters["max_key_size"] = length;
    run(configured, 4096,
        [&](objects::Session& session, pmem::Region&, objects::DirectMemory memory) -> Task<> {
          co_await use_keys(session, memory, 128 * MiB, length);
          const auto pool = *co_await session.open_pool("pool", {});
          const std::string key = long_key(length + 1, 'c');
          std::array<std::byte, 16> into{};
          const objects::DirectBuffer direct{memory, 0, 16};
          EXPECT_EQ(error_of(co_await pool->put(as_key(key), {}, {})), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->get(as_key(key))), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->get(as_key(key), into)), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->erase(as_key(key))), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->put_direct(as_key(key), direct, {})), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->get_direct(as_key(key), direct)), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->attributes(as_key(key))), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->invoke(as_key(key), {}, 0, {})), Error::too_large);
          EXPECT_EQ(error_of(co_await pool->find(key, objects::Match::prefix, 0)),
                    Error::too_large);
          EXPECT_EQ((co_await pool->attributes())->items, 1U);
        });
  }
}

// As many bytes as four buffers of the key take: the client's, the shard's two, and the key itself.
TEST_P(Sizes, KeysOfHundredsOfMiB) {
  constexpr Bytes length = 256 * MiB;
  constexpr Bytes memory = 2 * length + 128 * MiB;
  objects::Config configured = config(memory);
  configured.parameters["max_key_size"] = length;
  configured.max_message_value = 64;
  run(configured, 4096,
      [&](objects::Session& session, pmem::Region&, objects::DirectMemory direct) -> Task<> {
        co_await use_keys(session, direct, memory, length);
      });
}

// Granules so large that the second pool, and the part of the client's memory, lie beyond 4 GiB.
// What is not used of that takes no memory.
TEST_P(Sizes, PlacesBeyondFourGiB) {
  constexpr Bytes kHugeGranule = 4608 * MiB;
  constexpr Bytes kDirect = 5 * GiB;
  constexpr Bytes kLongValue = 8 * MiB;
  objects::Config configured = config(2 * kHugeGranule);
  configured.parameters["granule"] = kHugeGranule;
  run(configured, kDirect,
      [](objects::Session& session, pmem::Region& region, objects::DirectMemory memory) -> Task<> {
        const auto first = *co_await session.create_pool("first", kHugeGranule, {});
        const auto second = *co_await session.create_pool("second", kHugeGranule, {});
        EXPECT_EQ(error_of(co_await first->put(as_key("key"), as_key("of the first"), {})),
                  std::nullopt);
        EXPECT_GT((co_await second->attributes())->free, 4 * GiB);
        const std::span<std::byte> bytes(region.data(), kDirect);
        for (const Bytes at : {4 * GiB - kLongValue / 2, kDirect - kLongValue}) {
          co_await use_value(*second, bytes, memory, at, kLongValue);
        }
        EXPECT_EQ(error_of(co_await second->put_direct(
                      as_key("key"), {memory, kDirect - kLongValue + 1, kLongValue}, {})),
                  Error::invalid);
        // Parts of values that have no such parts, also beyond what 32 bits tell.
        for (const Bytes offset :
             {kLongValue, Bytes{1} << 31, Bytes{1} << 32, (Bytes{1} << 32) + 1, ~Bytes{} - 7}) {
          EXPECT_EQ(
              error_of(co_await second->get_direct_offset(as_key("key"), offset, {memory, 0, 8})),
              Error::invalid);
          EXPECT_EQ(
              error_of(co_await second->put_direct_offset(as_key("key"), offset, {memory, 0, 8})),
              Error::invalid);
        }
        const auto got = co_await first->get(as_key("key"));
        EXPECT_TRUE(got && std::ranges::equal(*got, as_key("of the first")));
      });
}

}  // namespace
}  // namespace perdura::systems::mcas
