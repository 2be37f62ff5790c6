// The longest value and the longest key that there may be (MCAS, section 3.2.1), through the
// library; what is a byte longer is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::DirectMemory;
using mcas::Pool;
using mcas::Status;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kLongestValue = 1024 * kMiB;
constexpr std::uint64_t kLongestKey = kLongestValue - 4096;
constexpr std::uint64_t kMemory = kLongestValue + 96 * kMiB;

// A shard for one client, which has one operation under way: each has room for the longest key.
Shards shard_with(const std::string& more) {
  return Shards(1, "sessions = 1\nqueue_depth = 1\n" + more,
                {"memory = " + std::to_string(kMemory)});
}

// Of all words of the value none is where another one would have to be.
std::uint64_t word_at(std::uint64_t word) { return (word + 1) * 0x9E3779B97F4A7C15; }
void fill(std::span<std::byte> bytes) {
  for (std::uint64_t i = 0; i < bytes.size() / 8; ++i) {
    const std::uint64_t word = word_at(i);
    std::memcpy(bytes.data() + i * 8, &word, 8);
  }
}
bool is_filled(std::span<const std::byte> bytes) {
  for (std::uint64_t i = 0; i < bytes.size() / 8; ++i) {
    const std::uint64_t word = word_at(i);
    if (std::memcmp(bytes.data() + i * 8, &word, 8) != 0) return false;
  }
  return true;
}

TEST(McasSizes, AValueOfOneGiB) {
  Shards shards = shard_with("");
  shards.start_all();
  Client client(shards.client());
  Pool pool = client.create_pool("p", kMemory).value();
  DirectMemory memory = client.register_direct_memory(kLongestValue + 8).value();
  const std::span<std::byte> value = memory.bytes().first(kLongestValue);
  fill(value);
  EXPECT_EQ(pool.put_direct("k", {memory, 0, kLongestValue + 1}).status(), Status::too_large);
  EXPECT_EQ(pool.attributes("k").status(), Status::not_found);
  ASSERT_EQ(pool.put_direct("k", {memory, 0, kLongestValue}).status(), Status::ok);
  EXPECT_EQ(pool.attributes("k").value().value_length, kLongestValue);
  std::ranges::fill(value, std::byte{});
  EXPECT_EQ(pool.get_direct("k", {memory, 0, kLongestValue - 1}).status(), Status::too_large);
  ASSERT_EQ(pool.get_direct("k", {memory, 0, kLongestValue}).value(), kLongestValue);
  EXPECT_TRUE(is_filled(value));
  // The shard that is next has it, too.
  shards.kill(0);
  shards.start(0);
  std::ranges::fill(value, std::byte{});
  // A call that was sent before the death was noticed ends as disconnected.
  ASSERT_TRUE(test::wait_until([&] { return pool.attributes("k").ok(); }));
  ASSERT_EQ(pool.get_direct("k", {memory, 0, kLongestValue}).value(), kLongestValue);
  EXPECT_TRUE(is_filled(value));
  EXPECT_TRUE(pool.erase("k").ok());
}

TEST(McasSizes, TheLongestKey) {
  Shards shards =
      shard_with("max_message_value = 64\nmax_key_size = " + std::to_string(kLongestKey));
  shards.start_all();
  mcas::ClientOptions options = shards.client();
  options.queue_depth = 1;
  Client client(options);
  Pool pool = client.create_pool("p", kMemory).value();
  DirectMemory memory = client.register_direct_memory(4096).value();
  std::string key(kLongestKey, 'k');
  ASSERT_EQ(pool.put(key, "value").status(), Status::ok);
  EXPECT_EQ(pool.get(key).value(), "value");
  EXPECT_EQ(pool.put_direct(key, {memory, 0, 4096}).status(), Status::ok);
  EXPECT_EQ(pool.attributes(key).value().value_length, 4096U);
  key.back() = 'K';
  EXPECT_EQ(pool.get(key).status(), Status::not_found);
  EXPECT_EQ(pool.put(key, "value").status(), Status::out_of_space);
  key.push_back('k');
  EXPECT_EQ(pool.put(key, "value").status(), Status::too_large);
  EXPECT_EQ(pool.get(key).status(), Status::too_large);
  EXPECT_EQ(pool.put_direct(key, {memory, 0, 4096}).status(), Status::too_large);
  EXPECT_EQ(pool.erase(key).status(), Status::too_large);
  EXPECT_EQ(pool.attributes().value().items, 1U);
  key.pop_back();
  key.back() = 'k';
  EXPECT_TRUE(pool.erase(key).ok());
  EXPECT_EQ(pool.attributes().value().items, 0U);
}

}  // namespace
}  // namespace perdura::library_test
