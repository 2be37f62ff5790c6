// Shards and clients that are killed by SIGKILL: what a client was told is kept, and a shard serves
// whoever is left.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tests/library/mcas/support.h"
#include "tests/support/seed.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;
using mcas::Status;

constexpr std::size_t kKeys = 64;

std::string key_of(std::size_t key) { return "key " + std::to_string(key); }

// What the writer tells, which outlives it: of each key the last version that it began to put and
// the last one that a put has returned for.
struct Told {
  std::array<std::atomic<std::uint64_t>, kKeys> begun{};
  std::array<std::atomic<std::uint64_t>, kKeys> acknowledged{};
  std::atomic<std::uint64_t> puts{0};
  std::atomic<std::uint64_t> wrong{0};
};

class KillOfMcas : public testing::TestWithParam<std::string> {
 protected:
  void start_writer(unsigned seed) {
    writer_ = Child([this, seed] { write(seed); });
  }
  void write(unsigned seed) {
    std::mt19937 random(seed);
    Client client(shards_.client());
    Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
    for (;;) {
      const std::size_t key = random() % kKeys;
      const std::uint64_t version = told_->begun[key] + 1;
      told_->begun[key] = version;
      const Status status = pool.put(key_of(key), value_of(version)).status();
      if (status == Status::ok) {
        told_->acknowledged[key] = version;
        ++told_->puts;
      } else if (status != Status::disconnected) {
        ++told_->wrong;
      }
    }
  }
  // False if the writer gets nowhere.
  bool progress(std::uint64_t puts) {
    const std::uint64_t goal = told_->puts + puts;
    return test::wait_until([&] { return told_->puts >= goal; });
  }
  // What is there is at least what was acknowledged, whole, and nothing that nobody put.
  void expect_everything() {
    Client client(shards_.client());
    Pool pool = client.open_pool("p").value();
    for (std::size_t key = 0; key < kKeys; ++key) {
      const std::uint64_t acknowledged = told_->acknowledged[key];
      mcas::Result<std::string> value = pool.get(key_of(key));
      if (value.status() == Status::not_found) {
        EXPECT_EQ(acknowledged, 0U) << key_of(key) << " is lost";
        continue;
      }
      const std::uint64_t version = version_in(value.value());
      EXPECT_EQ(value.value(), value_of(version)) << "torn";
      EXPECT_GE(version, acknowledged) << "an acknowledged put is lost";
      EXPECT_LE(version, told_->begun[key]);
    }
  }

  Shared<Told> told_;
  Shards shards_{1, "engine = \"" + GetParam() + "\""};
  Child writer_;
};

TEST_P(KillOfMcas, LosesNothingThatWasAcknowledged) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  shards_.start_all();
  start_writer(random());
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(progress(1 + random() % 100)) << "round " << round;
    if (random() % 3 == 0) {
      writer_.end();
      start_writer(random());
    } else {
      // The writer goes on by itself, with the pool that it has open.
      shards_.kill(0);
      shards_.start(0);
    }
  }
  ASSERT_TRUE(progress(1));
  writer_.end();
  EXPECT_EQ(told_->wrong, 0U);
  expect_everything();
  shards_.kill(0);
  shards_.start(0);
  expect_everything();
}

// More clients come and are killed than the shard has sessions.
TEST_P(KillOfMcas, AShardOutlivesItsClients) {
  shards_.start_all();
  Client client(shards_.client());
  Pool pool = client.create_pool("p", kPool).value();
  for (int i = 0; i < 80; ++i) {
    start_writer(static_cast<unsigned>(i));
    ASSERT_TRUE(progress(1));
    writer_.end();
    ASSERT_TRUE(pool.put("mine", std::to_string(i)).ok());
  }
  EXPECT_EQ(pool.get("mine").value(), "79");
  expect_everything();
  // The handles of the dead are closed.
  EXPECT_TRUE(pool.close().ok());
  EXPECT_TRUE(test::wait_until([&] { return client.delete_pool("p").ok(); }));
}

std::string engine_name(const testing::TestParamInfo<std::string>& engine) {
  return engine.param == "hstore" ? "Hstore" : "HstoreCc";
}
INSTANTIATE_TEST_SUITE_P(Engines, KillOfMcas, testing::Values("hstore", "hstore-cc"), engine_name);

TEST(KillOfAMcasShard, EndsWhatIsUnderWayAndLaterCallsWaitForTheNextOne) {
  Shards shards(1);
  shards.start_all();
  mcas::ClientOptions options = shards.client();
  options.connect_timeout = std::chrono::milliseconds(5'000);
  Client client(options);
  // The next one has it already.
  Pool pool = client.create_pool("p", kPool, {.create_only = true}).value();
  mcas::DirectMemory memory = client.register_direct_memory(4096).value();
  ASSERT_TRUE(pool.put_direct("direct", {memory, 0, 4096}).ok());
  shards.server(0).stand_still();
  mcas::Pending<void> put = pool.async_put("k", "v");
  shards.kill(0);
  EXPECT_EQ(put.wait().status(), Status::disconnected);
  // Nobody is there.
  mcas::Pending<std::string> get = pool.async_get("direct");
  shards.start(0);
  EXPECT_EQ(get.wait().value().size(), 4096U);
  // The pool and the memory are known to the next one, too.
  EXPECT_TRUE(pool.put("k", "v").ok());
  EXPECT_EQ(pool.get_direct("direct", {memory, 0, 4096}).value(), 4096U);
}

TEST(KillOfAMcasShard, IsUnreachableUntilItIsBack) {
  Shards shards(1);
  shards.start_all();
  mcas::ClientOptions options = shards.client();
  {
    // Made by one that waits, so that there is a pool.
    Client(options).create_pool("p", kPool).value().put("k", "v").value();
  }
  options.connect_timeout = std::chrono::milliseconds(300);
  std::optional<Client> client;
  ASSERT_TRUE(test::wait_until([&] {
    try {
      client.emplace(options);
    } catch (const TimedOut&) {
    }
    return client.has_value();
  }));
  Pool pool = client->open_pool("p").value();
  shards.kill(0);
  // The first call may have been sent before the death was noticed.
  EXPECT_TRUE(test::wait_until([&] { return pool.get("k").status() == Status::unreachable; }));
  shards.start(0);
  EXPECT_TRUE(test::wait_until([&] { return pool.get("k").ok(); }));
}

}  // namespace
}  // namespace perdura::library_test
