// The processes of active data objects: launched when they are needed, anew when the pool has got
// memory or they have died, and ended when nobody has the pool open (MCAS, section 4.2).
#include <fmt/format.h>

#include <random>
#include <sstream>

#include "services/objects/pending.h"
#include "systems/mcas/ado/plugins/versioning.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Invocation;
using ado::Services;
using objects::Error;

constexpr objects::InvokeFlags kCreate{.create_on_demand = true, .zero_new_value = true};

class Processes : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Processes, testing::Values("sim", "shm"), platform_name);

TEST_P(Processes, EachPoolHasItsOwnWhileItIsOpen) {
  Cluster cluster(GetParam(), config_with("passthru"));
  TestLauncher& launcher = cluster.launcher();
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto first = *co_await session.create_pool("first", MiB, {});
    const auto second = *co_await session.create_pool("second", MiB, {});
    co_await first->put(as_key("key"), as_key("value"), {});
    EXPECT_EQ(launcher.running, 0) << "nobody has called it";
    EXPECT_EQ(answer_of(co_await first->invoke(as_key("key"), as_key("1"), 64, kCreate)), "1");
    EXPECT_EQ(launcher.running, 1);
    EXPECT_EQ(answer_of(co_await second->invoke(as_key("key"), as_key("2"), 64, kCreate)), "2");
    EXPECT_EQ(launcher.running, 2);
    EXPECT_EQ(answer_of(co_await first->invoke(as_key("key"), as_key("3"), 64, kCreate)), "3");
    EXPECT_EQ(launcher.orders.size(), 2U);
    EXPECT_NE(launcher.orders[0].pool, launcher.orders[1].pool);
    for (const ByteRange& part : launcher.orders[0].parts) {
      for (const ByteRange& other : launcher.orders[1].parts) {
        EXPECT_TRUE(part.end() <= other.offset || other.end() <= part.offset);
      }
    }
    co_await first->close();
    co_await until_running(launcher, 1);
    const auto again = *co_await session.open_pool("first", {});
    EXPECT_EQ(answer_of(co_await again->invoke(as_key("key"), as_key("4"), 64, kCreate)), "4");
    EXPECT_EQ(launcher.orders.size(), 3U);
    EXPECT_EQ(error_of(co_await session.delete_pool("first")), Error::busy);
    EXPECT_EQ(launcher.running, 2);
    // The memory of a pool that is deleted is seen by nobody.
    co_await again->close();
    EXPECT_FALSE(error_of(co_await session.delete_pool("first")));
    EXPECT_EQ(launcher.running, 1);
    const auto third = *co_await session.create_pool("third", MiB, {});
    EXPECT_EQ(answer_of(co_await third->invoke(as_key("key"), as_key("5"), 64, kCreate)), "5");
    co_await second->close();
    co_await third->close();
    co_await until_running(launcher, 0);
  });
}

// A process that still writes when it is told to end: nothing of that is in the memory that a
// deleted pool has given back.
TEST(PoolDeletion, WaitsUntilItsProcessIsGone) {
  class Late final : public ado::Plugin {
   public:
    Task<ado::Result> do_work(Services& services, const Invocation& work) override {
      memory_.emplace(services.memory());
      value_ = work.value;
      co_return ado::Result{{std::to_string(work.value.offset)}, {}};
    }
    void shut_down() override { memory_->region().write(value_.offset, as_key("late")); }

   private:
    std::optional<Memory> memory_;
    ByteRange value_;
  };
  const auto late = [](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Late>());
    return plugins;
  };
  Cluster cluster("sim", config_with(kFunction), late);
  Bytes offset = 0;
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    offset = std::stoul(answer_of(co_await pool->invoke(as_key("key"), {}, 64, kCreate)));
    // Both requests arrive before the process can have ended.
    objects::Pending<void> closing(pool->close());
    EXPECT_FALSE(error_of(co_await session.delete_pool("pool")));
  });
  const auto memory = cluster.platform().local_node(kShardNode)->open_region(kMemory);
  std::string found(4, '\0');
  memory->read(offset, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found, std::string(4, '\0'));
}

// Fills a pool of granules of 16 KiB by plugins and by clients. A work sees all that it is given,
// and none is executed twice.
TEST_P(Processes, SeeAllOfThePoolsMemory) {
  struct Range {
    Bytes first = ~Bytes{};
    Bytes end = 0;
  };
  int works = 0;
  // Creates a value of its own, and answers the ranges that it was given.
  const auto plugin = [&](Services& services, const Invocation& work) -> Task<ado::Result> {
    const auto created = co_await services.create_key(work.request, 5000);
    if (!created) co_return ado::Result{{}, "it could not be created"};
    const auto allocated = co_await services.allocate_memory(3000);
    if (!allocated) {
      co_await services.erase_key(work.request);
      co_return ado::Result{{}, "it could not be allocated"};
    }
    ++works;
    std::string ranges;
    for (const ByteRange& range : {work.value, created.value, allocated.value}) {
      ranges += fmt::format("{} {} ", range.offset, range.end());
    }
    co_return ado::Result{{ranges}, {}};
  };
  Cluster cluster(GetParam(),
                  config_with(kFunction, {{"granule", 16 * KiB}, {"heap_region", 16 * KiB}}),
                  function(plugin));
  TestLauncher& launcher = cluster.launcher();
  int acknowledged = 0;
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    std::mt19937_64 random(1);
    std::optional<Error> error;
    for (int i = 0; !error; ++i) {
      const std::string key = fmt::format("key {}", i);
      if (random() % 2 == 0) {
        const std::string value(random() % 2000, 'v');
        error = error_of(co_await pool->put(as_key(key), as_key(value), {}));
        continue;
      }
      const std::string created = fmt::format("created {}", i);
      const auto answer =
          co_await pool->invoke(as_key(key), as_key(created), random() % 9000, kCreate);
      error = error_of(answer);
      if (error) break;
      ++acknowledged;
      std::istringstream ranges(answer_of(answer));
      const auto& parts = launcher.orders.back().parts;
      for (Bytes first = 0, end = 0; ranges >> first >> end;) {
        EXPECT_TRUE(std::any_of(
            parts.begin(), parts.end(),
            [&](const ByteRange& part) { return part.offset <= first && end <= part.end(); }))
            << first << " to " << end;
      }
      EXPECT_EQ((co_await pool->attributes(as_key(created)))->value_length, 5000U);
    }
    EXPECT_TRUE(error == Error::out_of_space || error == Error::failed);
  });
  EXPECT_GT(acknowledged, 20);
  EXPECT_EQ(works, acknowledged);
  EXPECT_GT(launcher.orders.size(), 10U);
  EXPECT_LT(launcher.orders.size(), 70U) << "there are 64 granules";
}

// Of what cannot be launched clients are told, and the shard does not try for ever.
TEST_P(Processes, ALaunchThatFailsIsTriedAFewTimes) {
  Cluster cluster(GetParam(), config_with("passthru"));
  TestLauncher& launcher = cluster.launcher();
  std::atomic<int> failures = 0;
  launcher.on_launch = [&] {
    if (failures-- > 0) throw PlatformError("the test refuses it");
  };
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    failures = 2;
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("1"), 64, kCreate)), "1");
    EXPECT_EQ(launcher.orders.size(), 3U);
    co_await pool->close();
    co_await until_running(launcher, 0);
    const auto again = *co_await session.open_pool("pool", {});
    failures = 1000;
    const objects::PoolAttributes before = *co_await again->attributes();
    const std::string value(100, 'v');
    const auto refused = co_await again->invoke(as_key("key"), as_key("2"), 64, {});
    EXPECT_EQ(error_of(refused), Error::failed);
    EXPECT_EQ(refused.error().reason,
              "the process of active data objects cannot be launched: the test refuses it");
    EXPECT_EQ(error_of(co_await again->invoke_put(as_key("key"), as_key("2"), as_key(value), 64,
                                                  {.detached = true})),
              Error::failed);
    EXPECT_EQ(launcher.orders.size(), 3U + 3 + 3);
    EXPECT_EQ((co_await again->attributes())->free, before.free);
    EXPECT_FALSE(error_of(co_await again->put(as_key("key"), as_key(value), {})))
        << "the key is locked";
    failures = 0;
    EXPECT_EQ(answer_of(co_await again->invoke(as_key("key"), as_key("3"), 64, {})), "3");
  });
}

// A work that never ends is ended after a while; others, of other pools and of other keys, go on
// meanwhile.
TEST_P(Processes, APluginThatNeverAnswersHarmsNobodyElse) {
  const auto stuck = [](Services&, const Invocation& work) -> Task<ado::Result> {
    while (work.request == "never") co_await sleep_for(Milliseconds(1));
    co_return ado::Result{{work.request}, {}};
  };
  // So long that the others are heard on a busy host, too: there they did two rounds in 20 ms.
  Cluster cluster(GetParam(), config_with(kFunction, {{"plugin_patience", 500}}), function(stuck));
  cluster.serve();
  std::atomic<bool> begun = false;
  std::atomic<bool> ended = false;
  int done_meanwhile = 0;
  cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("once"), 64, kCreate)), "once");
    begun = true;
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("key"), as_key("never"), 64, {})),
              Error::failed);
    ended = true;
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("again"), 64, {})), "again");
  });
  cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
    while (!begun) co_await sleep_for(Microseconds(20));
    const auto pool = *co_await session.open_pool("pool", {});
    const auto other = *co_await session.create_pool("other", MiB, {});
    while (!ended) {
      EXPECT_FALSE(error_of(co_await pool->put(as_key("another"), as_key("value"), {})));
      EXPECT_EQ(answer_of(co_await other->invoke(as_key("key"), as_key("hello"), 64, kCreate)),
                "hello");
      ++done_meanwhile;
    }
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("value"), {})));
  });
  cluster.platform().run();
  EXPECT_TRUE(ended);
  EXPECT_GT(done_meanwhile, 10);
}

// Processes die at random moments, while clients put versions of values, and others put and get
// without plugins: what is acknowledged is there, what has failed may be, and the others notice
// nothing.
TEST(ProcessDeaths, TakeNothingButTheirWorks) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  Cluster cluster("sim", config_with("versioning:1"));
  cluster.serve();
  constexpr int kPuts = 150;
  // Clients that wait for ever would have the others, and deaths, go on for ever.
  constexpr Time kLongest{Milliseconds(3000)};
  int failed = 0;
  int ended = 0;
  for (int client = 0; client < 2; ++client) {
    cluster.connect([&, client](objects::Session& session, Thread&) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
      const std::string key = fmt::format("key {}", client);
      std::string before;
      for (int i = 0; i < kPuts; ++i) {
        const std::string value = fmt::format("{} of {}", i, client);
        const std::string put = ado::Versioning::put_request(value);
        const auto done = co_await pool->invoke(as_key(key), as_key(put), 64, kCreate);
        EXPECT_TRUE(done || done.error() == Error::failed);
        if (!done) ++failed;
        // A get may fail, too; then it is tried again.
        objects::Result<objects::Answers> got;
        do {
          const std::string get = ado::Versioning::get_request(0);
          got = co_await pool->invoke(as_key(key), as_key(get), 64, {.read_only = true});
        } while (!got && got.error() == Error::failed);
        const std::string found = ado::Versioning::version_of(answer_of(got)).value_or("");
        EXPECT_TRUE(found == value || (!done && found == before)) << found << " after " << value;
        before = found;
      }
      ++ended;
    });
  }
  const auto goes_on = [&](Time now) { return ended < 2 && now < kLongest; };
  cluster.connect([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    while (goes_on(thread.executor.now())) {
      const std::string value(100 + random() % 100, 'v');
      EXPECT_FALSE(error_of(co_await pool->put(as_key("plain"), as_key(value), {})));
      EXPECT_EQ(string_of(*co_await pool->get(as_key("plain"))), value);
    }
  });
  Time next{};
  std::function<void()> kill_again = [&] {
    if (cluster.launcher().running > 0) cluster.sim().kill(cluster.launcher().process_node());
    next += Microseconds(50 + random() % 500);
    if (goes_on(next)) cluster.sim().at(next, kill_again);
  };
  kill_again();
  cluster.platform().run();
  EXPECT_EQ(ended, 2);
  EXPECT_GT(failed, 5);
}

}  // namespace
}  // namespace perdura::systems::mcas
