// A plugin in a process of its own, isolated where this machine can isolate any, writes random
// bytes over all memory that it reaches, while a client uses its pool in every way, and the shard
// is killed and started again. The pool is lost. No other one changes, and the shard lives.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "tests/library/mcas/support.h"
#include "tests/support/seed.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::DirectMemory;
using mcas::Pool;
using mcas::Status;

constexpr int kDamagedKeys = 10;
constexpr int kTimesInARound = 3;
// For ten thousand: making its pool and starting a shard take most of a round of three.
constexpr int kTimesInALongRound = 50;
constexpr std::size_t kDirect = 9000;

std::string damaged_key(std::uint64_t number) { return "key " + std::to_string(number); }

// The shard has answered, whatever it is.
void expect_answer(Status status, const char* what) {
  EXPECT_NE(status, Status::disconnected) << what;
  EXPECT_NE(status, Status::unreachable) << what;
  EXPECT_NE(status, Status::timed_out) << what;
}

class Scribbled {
 public:
  Scribbled(const std::string& engine, std::uint32_t seed)
      : random_(seed),
        forgets_(engine == "mapstore"),
        shards_(1, with_plugin(PERDURA_SCRIBBLING_PLUGIN, engine)) {
    start();
    Client client(shards_.client());
    Pool other = client.create_pool("other", kPool).value();
    for (int i = 0; i < kDamagedKeys; ++i) {
      other.put(damaged_key(static_cast<std::uint64_t>(i)), value_of(static_cast<std::uint64_t>(i)))
          .value();
    }
  }

  // A pool is made, damaged several times, used, now and then opened by another shard, and deleted.
  // `surely`: all of its memory is damaged, and another shard opens it.
  void round(bool surely, int times) {
    {
      Client client(shards_.client());
      DirectMemory memory = client.register_direct_memory(kDirect).value();
      Pool pool = client.create_pool("damaged", kPool).value();
      for (std::uint64_t i = 0; i < kDamagedKeys; ++i)
        pool.put(damaged_key(i), value_of(i)).value();
      for (int time = 0; time < times; ++time) {
        const std::uint64_t one_of = surely || random_() % 3 == 0 ? 1 : 20 + random_() % 2000;
        // While others use the pool.
        auto damaging = pool.async_invoke(
            damaged_key(0), "random " + std::to_string(random_()) + " " + std::to_string(one_of));
        use(pool, memory);
        expect_answer(damaging.wait().status(), "random");
        use(pool, memory);
      }
      expect_use(pool.configure("AddIndex::VolatileTree").status(), "configure");  // visits all
      look_at_the_other(client);
      EXPECT_TRUE(pool.close().ok());
    }
    if (!forgets_ && (surely || random_() % 3 == 0)) {
      shards_.kill(0);
      start();
    }
    Client client(shards_.client());
    {
      const auto opened = client.open_pool("damaged");
      expect_answer(opened.status(), "open");
      refused_ += opened.ok() ? 0 : 1;
      EXPECT_TRUE(opened.ok() || opened.status() == Status::failed);
      EXPECT_EQ(opened.ok(), opened.reason().find("damaged") == std::string::npos)
          << opened.reason();
    }
    EXPECT_TRUE(client.delete_pool("damaged").ok());
    look_at_the_other(client);
  }
  int damaged() const { return damaged_; }
  int refused() const { return refused_; }

 private:
  void start() { shards_.start(0, shards_.directory() + "/log"); }

  void expect_use(Status status, const char* what) {
    expect_answer(status, what);
    damaged_ += status == Status::failed ? 1 : 0;
  }

  void use(Pool& pool, const DirectMemory& memory) {
    for (int i = 0; i < 8; ++i) {
      const std::string key = damaged_key(random_() % (kDamagedKeys + 2));
      const std::size_t length = 1 + random_() % kDirect;
      switch (random_() % 7) {
        case 0:
          expect_use(pool.get(key).status(), "get");
          break;
        case 1:
          expect_use(pool.put(key, value_of(random_() % 7)).status(), "put");
          break;
        case 2:
          expect_use(pool.erase(key).status(), "erase");
          break;
        case 3:
          expect_answer(pool.put_direct(key, {memory, 0, length}).status(), "put_direct");
          break;
        case 4:
          expect_answer(pool.get_direct(key, {memory, 0, kDirect}).status(), "get_direct");
          break;
        case 5:
          expect_answer(pool.put_direct_offset(key, random_() % 16, {memory, 0, 8}).status(),
                        "put_direct_offset");
          break;
        default:
          expect_answer(pool.invoke(key, "resize " + std::to_string(random_() % 5000), 64).status(),
                        "resize");
      }
    }
  }

  void look_at_the_other(Client& client) {
    Pool other = client.open_pool("other").value();
    for (std::uint64_t i = 0; i < kDamagedKeys; ++i) {
      EXPECT_EQ(other.get(damaged_key(i)).value(), value_of(i));
    }
    EXPECT_EQ(other.attributes().value().items, std::uint64_t{kDamagedKeys});
  }

  std::mt19937_64 random_;
  bool forgets_;  // what is in its pools when it is killed
  Shards shards_;
  int damaged_ = 0;
  int refused_ = 0;
};

void scribble(const std::string& engine, int rounds, int times) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  Scribbled scribbled(engine, seed);
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "round " << i);
    scribbled.round(i == 0, times);
  }
  if (engine == "mapstore") {  // of which values alone are in the pool's memory
    EXPECT_EQ(scribbled.damaged() + scribbled.refused(), 0);
  } else {
    EXPECT_GT(scribbled.damaged(), 0);
    EXPECT_GT(scribbled.refused(), 0);
  }
}

class McasDamage : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, McasDamage, testing::Values("hstore", "hstore-cc", "mapstore"),
                         name_of_engine);

TEST_P(McasDamage, OfOnePoolHarmsNoOther) { scribble(GetParam(), 4, kTimesInARound); }
TEST_P(McasDamage, OfOnePoolTenThousandTimesHarmsNoOther) {
  scribble(GetParam(), 10'000 / kTimesInALongRound, kTimesInALongRound);
}

}  // namespace
}  // namespace perdura::library_test
