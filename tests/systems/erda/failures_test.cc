// A small history with one cleaning (section 4.4), and a failure at every moment of it: of the
// server's power, of the server's process, of a client, or a client that connects just then.
#include "platform/error.h"
#include "platform/sim/failures.h"
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::explore_failures;
using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::sim::SimPlatform;
using pmem::PersistenceDomain;
using pmem::PersistenceModel;

constexpr std::uint64_t kKeys = 5;
constexpr NodeId kServer = 0;
constexpr NodeId kWriter = 1;
constexpr NodeId kOther = 2;  // reads and deletes, too
constexpr NodeId kLate = 3;

// Region 1 holds 46 objects, of which 80 % are reached once; merging meets stale versions, deleted
// keys and objects that another client is just writing.
const KvConfig kConfig = config_of({1, 4, 2 * KiB, 1 * KiB}, kKeys);
constexpr int kPuts = 32;

class Scenario {
 public:
  explicit Scenario(PersistenceModel model)
      : made_(perdura::test::make_platform("sim", 4)),
        platform(static_cast<SimPlatform&>(*made_)) {
    platform.track_durability(model);
    start_server();
    start(kWriter, [](KvSession& session, Thread&) -> Task<> {
      Versions versions(kWriter);
      for (int i = 0; i < kPuts; ++i) co_await put(session, i % kKeys, versions.next());
    });
    start(kOther, [](KvSession& session, Thread&) -> Task<> {
      Versions versions(kOther);
      Buffer into(4 * kValue);
      for (int i = 0; i < kPuts / 2; ++i) {
        const std::uint64_t number = (3 * i + 1) % kKeys;
        const Buffer key = key_of(number);
        if (i % 5 == 4) {
          expect_space(co_await session.erase(key));
        } else {
          co_await put(session, number, versions.next());
        }
        expect_space(co_await session.get(key, into));
      }
    });
  }

  void start_server() {
    platform.start_service(kServer, 0, CompletionMode::polling,
                           [this](Thread& thread) { return serve(thread, kConfig, &gauge); });
  }
  void start(NodeId node, Recording::Client client) {
    platform.start(node, static_cast<fabric::Port>(node), CompletionMode::polling,
                   [this, recorded = recording.of(std::move(client))](Thread& thread) -> Task<> {
                     const Present present(clients_);
                     std::unique_ptr<KvSession> session;
                     try {
                       session = co_await connect(thread, kConfig);
                     } catch (const PlatformError&) {
                     }
                     if (session) co_await recorded(*session, thread);
                   });
  }
  // When the others have ended: all keys are read, written and read again.
  void start_late_reader() {
    start(kLate, [this](KvSession& session, Thread&) -> Task<> {
      while (clients_ > 1) co_await sleep_for(Microseconds(20));
      Versions versions(kLate);
      Buffer into(4 * kValue);
      for (int round = 0; round < 3; ++round) {
        for (std::uint64_t number = 0; number < kKeys; ++number) {
          const Buffer key = key_of(number);
          if (round == 1) co_await put(session, number, versions.next());
          const auto got = co_await session.get(key, into);
          EXPECT_TRUE(got || got.error() == Error::not_found) << to_string(got.error());
          if (round > 0) {
            EXPECT_TRUE(got.has_value()) << "key " << number;
          }
        }
      }
      // And it goes on to be cleaned.
      for (int i = 0; i < 2 * kPuts; ++i) co_await put(session, i % kKeys, versions.next());
    });
  }
  void expect_promised(history::Promise promise) {
    history::History history = recording.history();
    for (const Time when : power_failures) history.add_power_failure(when);
    const history::Verdict verdict = history::check(history, promise);
    EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  }

 private:
  // Counts a client for as long as it lives, however it ends.
  class Present {
   public:
    explicit Present(int& clients) : clients_(clients) { ++clients_; }
    ~Present() { --clients_; }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;

   private:
    int& clients_;
  };

  static Task<> put(KvSession& session, std::uint64_t number, std::uint64_t version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version, kValue);
    expect_space(co_await session.put(key, value));
  }

  std::unique_ptr<Platform> made_;

 public:
  SimPlatform& platform;
  Recording recording{128};
  Gauge gauge;
  std::vector<Time> power_failures;

 private:
  int clients_ = 0;
};

// What the server had done of cleaning when it failed, or at the end.
struct Met {
  std::uint64_t during = 0;
  std::uint64_t after = 0;
  void note(const Gauge& gauge) {
    const KvSpace space = gauge.now();
    during += space.cleanings_now;
    after += space.cleanings;
  }
};

void fail_power_everywhere(PersistenceModel model) {
  std::uint64_t runs = 0;
  Explored explored;
  Met met;
  for (const ExploreOptions& options :
       {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
        ExploreOptions{.images = Images::random, .seed = 1}}) {
    explored = explore_failures(options, [&](Failure& failure) {
      SCOPED_TRACE(failure.text());
      Scenario scenario(model);
      failure.watch(scenario.platform, [&](pmem::Choices& choices) {
        met.note(scenario.gauge);
        scenario.power_failures.push_back(scenario.platform.engine().now());
        scenario.platform.fail_power(kServer, choices);
        scenario.start_server();
        scenario.start_late_reader();
      });
      scenario.platform.run();
      scenario.expect_promised({.undone = history::Promise::Undone::last_version});
    });
    runs += explored.runs;
    if (testing::Test::HasFailure()) return;
  }
  std::cout << to_string(model.domain) << ": power failed at each of " << explored.moments
            << " moments, " << runs << " recoveries; " << met.during
            << " of them in the middle of a cleaning, " << met.after << " after one\n";
  EXPECT_GT(met.during, runs / 5);
  EXPECT_GT(met.after, 0U);
}

TEST(CleaningFailures, PowerFailsAnywhereWithVolatileCaches) {
  fail_power_everywhere({PersistenceDomain::dmp, false});
}

TEST(CleaningFailures, PowerFailsAnywhereWithPersistentCaches) {
  fail_power_everywhere({PersistenceDomain::mhp, true});
}

// The process dies, memory stays: nothing acknowledged is lost.
TEST(CleaningFailures, TheServerDiesAnywhere) {
  const Explored explored = explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    Scenario scenario({PersistenceDomain::mhp, true});
    failure.watch(scenario.platform, [&](pmem::Choices&) {
      scenario.platform.kill(kServer);
      scenario.start_server();
      scenario.start_late_reader();
    });
    scenario.platform.run();
    scenario.expect_promised({});
  });
  std::cout << "the server died at each of " << explored.moments << " moments\n";
}

TEST(CleaningFailures, AClientDiesAnywhere) {
  std::uint64_t moments = 0;
  for (const NodeId client : {kWriter, kOther}) {
    moments += explore_failures({}, [&](Failure& failure) {
                 SCOPED_TRACE(failure.text());
                 Scenario scenario({PersistenceDomain::mhp, true});
                 failure.watch(scenario.platform, [&](pmem::Choices&) {
                   scenario.platform.kill(client);
                   scenario.start_late_reader();
                 });
                 scenario.platform.run();
                 scenario.expect_promised({});
               }).moments;
  }
  std::cout << "a client died at each of " << moments << " moments\n";
}

TEST(CleaningFailures, AClientConnectsAnywhere) {
  const Explored explored = explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    Scenario scenario({PersistenceDomain::mhp, true});
    failure.watch(scenario.platform, [&](pmem::Choices&) {
      scenario.start(kLate, [](KvSession& session, Thread&) -> Task<> {
        Buffer into(4 * kValue);
        for (int i = 0; i < 20; ++i) {
          const Buffer key = key_of(i % kKeys);
          expect_space(co_await session.get(key, into));
          if (i % 4 == 0) {
            const Buffer value = value_of(i % kKeys, 1000 + i, kValue);
            expect_space(co_await session.put(key, value));
          }
        }
      });
    });
    scenario.platform.run();
    scenario.expect_promised({});
  });
  std::cout << "a client connected at each of " << explored.moments << " moments\n";
}

}  // namespace
}  // namespace perdura::systems::test
