// A client that is killed while it moves keys (ClusterPool::move_keys): no key is lost or has
// another value, and whoever moves next finishes the work.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "tests/library/mcas/support.h"
#include "tests/support/seed.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Cluster;
using mcas::ClusterPool;
using mcas::Pool;
using mcas::Status;

constexpr unsigned kShards = 3;
constexpr std::uint64_t kShortKeys = 100;
constexpr std::uint64_t kLongKeys = 6;  // whose values are too long for a message
constexpr std::uint64_t kAllKeys = kShortKeys + kLongKeys;
constexpr std::size_t kLongLength = 200'000;

bool is_long(std::uint64_t key) { return key >= kShortKeys; }
std::string name_of(std::uint64_t key) { return "key " + std::to_string(key); }
std::string long_value(std::uint64_t key, std::uint64_t version) {
  std::string value = std::to_string(key) + " " + std::to_string(version) + " ";
  for (std::size_t length = value.size(); value.size() < kLongLength;)
    value.append(value, 0, length);
  value.resize(kLongLength);
  return value;
}

class KillOfAMcasMover : public testing::Test {
 protected:
  KillOfAMcasMover() {
    shards_.start_all();
    for (unsigned shard = 0; shard < kShards; ++shard) {
      Client client(shards_.client(shard));
      Pool pool = client.create_pool("p", kPool).value();
      pool.configure("AddIndex::VolatileTree").value();
    }
    Cluster cluster(shards_.cluster());
    ClusterPool pool = cluster.pool("p", kPool);
    for (std::uint64_t key = 0; key < kAllKeys; ++key) put(cluster, pool, key);
  }

  // The next version of it.
  void put(Cluster& cluster, ClusterPool& pool, std::uint64_t key) {
    const std::uint64_t version = ++versions_[key];
    if (!is_long(key)) return pool.put(name_of(key), value_of(version)).value();
    const std::string value = long_value(key, version);
    mcas::DirectMemory memory = cluster.register_direct_memory(kLongLength).value();
    std::ranges::copy(std::as_bytes(std::span(value)), memory.bytes().begin());
    pool.of(name_of(key)).put_direct(name_of(key), {memory, 0, kLongLength}).value();
  }

  // The third shard leaves and joins, again and again.
  void move_for_ever() {
    const std::vector<mcas::Shard> all = shards_.list();
    Cluster cluster(shards_.cluster());
    ClusterPool pool = cluster.pool("p", kPool);
    for (;;) {
      cluster.remove(all[2].name);
      pool.move_keys({all[2]}).value();
      cluster.add(all[2]);
      pool.move_keys({all[0], all[1]}).value();
      ++told_->turns;
    }
  }

  std::uint64_t items() {
    std::uint64_t all = 0;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      Client client(shards_.client(shard));
      all += client.open_pool("p").value().attributes().value().items;
    }
    return all;
  }

  // The shards that have the key, by their names; its value is the last one on each.
  std::map<std::uint64_t, std::string> places() {
    std::map<std::uint64_t, std::string> found;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      Client client(shards_.client(shard));
      Pool pool = client.open_pool("p").value();
      mcas::DirectMemory memory = client.register_direct_memory(kLongLength).value();
      for (std::uint64_t key = 0; key < kAllKeys; ++key) {
        std::optional<std::string> value;
        if (is_long(key)) {
          const auto length = pool.get_direct(name_of(key), {memory, 0, kLongLength});
          if (length.status() == Status::not_found) continue;
          value.emplace(reinterpret_cast<const char*>(memory.bytes().data()), kLongLength);
          EXPECT_TRUE(value == long_value(key, versions_[key])) << name_of(key);
        } else {
          mcas::Result<std::string> got = pool.get(name_of(key));
          if (got.status() == Status::not_found) continue;
          EXPECT_EQ(got.value(), value_of(versions_[key])) << name_of(key);
        }
        found[key] += Shards::name(shard);
      }
    }
    return found;
  }

  struct Told {
    std::atomic<std::uint64_t> turns{0};
  };
  Shared<Told> told_;
  std::map<std::uint64_t, std::uint64_t> versions_;
  Shards shards_{kShards};
};

TEST_F(KillOfAMcasMover, LosesNoKeyAndTheNextOneFinishesTheWork) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  std::uint64_t in_two_places = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    Child mover([this] { move_for_ever(); });
    const std::uint64_t turn = told_->turns + 1;
    ASSERT_TRUE(test::wait_until([&] { return told_->turns >= turn; }));
    // In half of the rounds it dies between the copy of a key and its erasure, else anywhere.
    std::uint32_t looks = random() % 20;
    ASSERT_TRUE(test::wait_until([&] {
      mover.stand_still();
      const std::uint64_t there = items();
      EXPECT_GE(there, kAllKeys) << "a key is nowhere";
      if (round % 2 == 0 ? looks-- == 0 : there > kAllKeys) return true;
      mover.go_on();
      return testing::Test::HasFailure();
    }));
    mover.end();

    for (const auto& [key, shards] : places()) {
      EXPECT_LE(shards.size(), 2U) << name_of(key) << " is on " << shards;
      if (shards.size() == 2) ++in_two_places;
    }
    ASSERT_EQ(places().size(), kAllKeys) << "a key is lost";

    Cluster cluster(shards_.cluster());
    ClusterPool pool = cluster.pool("p", kPool);
    // What is put since the key belongs there is newer than what is moved.
    for (int newer = 0; newer < 10; ++newer) put(cluster, pool, random() % kAllKeys);
    put(cluster, pool, kShortKeys + random() % kLongKeys);
    ASSERT_TRUE(pool.move_keys(shards_.list()).ok());
    const std::map<std::uint64_t, std::string> found = places();
    ASSERT_EQ(found.size(), kAllKeys);
    for (const auto& [key, shards] : found) EXPECT_EQ(shards, cluster.owner(name_of(key)));
    EXPECT_EQ(pool.move_keys(shards_.list()).value(), 0U);
  }
  EXPECT_GT(in_two_places, 0U);
}

}  // namespace
}  // namespace perdura::library_test
