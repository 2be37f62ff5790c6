// A small history with one cleaning (section 4.4), and a failure at every moment of it: of the
// server's power, of the server's process, of a client, or a client that connects just then.
#include "platform/sim/failures.h"
#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"
#include "platform/runtime/work.h"
#include "tests/support/explore.h"
#include "tests/systems/erda/support.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::sim::SimPlatform;
using perdura::test::explore_until_failure;
using pmem::PersistenceDomain;
using pmem::PersistenceModel;

constexpr std::uint64_t kKeys = 5;
constexpr NodeId kServer = 0;
constexpr NodeId kWriter = 1;
constexpr NodeId kOther = 2;  // reads and deletes, too
constexpr NodeId kLate = 3;

// Region 1 holds 46 objects, of which 80 % are reached once; merging meets stale versions, deleted
// keys and objects that another client is just writing.
const kv::KvConfig kOneCleaning = config_of({1, 4, 2 * KiB, 1 * KiB}, kKeys);
constexpr int kPuts = 32;
// The head is cleaned all the time, so that everything is done by SEND, in all phases.
kv::KvConfig always_cleaning() {
  kv::KvConfig config = kOneCleaning;
  config.parameters["clean_always"] = 1;
  return config;
}

// As published the entry forgets the version before the newest one while that has not become
// durable. Where caches and devices are lost, so may both versions be.
kv::KvConfig persisting(kv::KvConfig config) {
  config.parameters["persist_before_update"] = 1;
  return config;
}

class Scenario {
 public:
  explicit Scenario(PersistenceModel model, faults::FaultPlan faults = {},
                    const kv::KvConfig& config = kOneCleaning)
      : made_(perdura::test::make_platform("sim", 4)),
        faults_(faults),
        config_(config),
        platform(static_cast<SimPlatform&>(*made_)) {
    platform.track_durability(model);
    start_server();
    start(kWriter,
          [this, versions = Versions(kWriter)](kv::KvSession& session, Thread&) mutable -> Task<> {
            for (; writer_step_ < kPuts; ++writer_step_) {
              if (!co_await put(session, writer_step_ % kKeys, versions.next())) co_return;
            }
          });
    start(kOther,
          [this, versions = Versions(kOther)](kv::KvSession& session, Thread&) mutable -> Task<> {
            Buffer into(4 * kValue);
            for (; other_step_ < kPuts / 2; ++other_step_) {
              const std::uint64_t number = (3 * other_step_ + 1) % kKeys;
              const Buffer key = key_of(number);
              if (other_step_ % 5 == 4) {
                if (!connected(co_await session.erase(key))) co_return;
              } else {
                if (!co_await put(session, number, versions.next())) co_return;
              }
              if (!connected(co_await session.get(key, into))) co_return;
            }
          });
  }

  void start_server() {
    platform.start_service(kServer, 0, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      faults::FaultPlan faults = faults_;
      faults.lose = 0;  // that is for clients to notice
      faults::FaultyThread faulty(thread, faults);
      co_await serve(faulty.thread(), config_, &gauge);
    });
  }
  void start(NodeId node, Recording::Client client) {
    platform.start(
        node, static_cast<fabric::Port>(node), CompletionMode::polling,
        [this, node, recorded = recording.of(std::move(client))](Thread& thread) -> Task<> {
          const Present present(clients_);
          faults::FaultyThread faulty(thread, node == kLate ? faults::FaultPlan() : faults_);
          std::unique_ptr<kv::KvSession> session;
          try {
            session = co_await connect(faulty.thread(), config_);
          } catch (const PlatformError&) {
          }
          if (busy_[node] != 0) thread.executor.spawn(compute(node));
          if (session) co_await recorded(*session, thread);
          busy_[node] = 0;
          counts.held += faulty.counts().held;
          counts.duplicated += faulty.counts().duplicated;
          counts.lost += faulty.counts().lost;
        });
  }
  // The client's thread also computes, in pieces of up to 20 us.
  void keep_busy(NodeId node, unsigned seed) { busy_[node] = seed; }

  // When the others have ended: all keys are read, written and read again.
  void start_late_reader() {
    start(kLate, [this](kv::KvSession& session, Thread&) -> Task<> {
      while (clients_ > 1) co_await sleep_for(Microseconds(20));
      Versions versions(kLate);
      Buffer into(4 * kValue);
      for (int round = 0; round < 3; ++round) {
        for (std::uint64_t number = 0; number < kKeys; ++number) {
          const Buffer key = key_of(number);
          if (round == 1) static_cast<void>(co_await put(session, number, versions.next()));
          const auto got = co_await session.get(key, into);
          EXPECT_TRUE(got || got.error() == kv::Error::not_found) << to_string(got.error());
          if (round > 0) {
            EXPECT_TRUE(got.has_value()) << "key " << number;
          }
        }
      }
      // And it goes on to be cleaned.
      for (int i = 0; i < 2 * kPuts; ++i) {
        static_cast<void>(co_await put(session, i % kKeys, versions.next()));
      }
    });
  }
  void expect_promised(history::Promise promise) {
    history::History history = recording.history();
    for (const Time when : power_failures) history.add_power_failure(when);
    const history::CheckResult verdict = history::check(history, promise);
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

  Task<> compute(NodeId node) {
    std::mt19937 random(busy_[node]);
    while (busy_[node] != 0) {
      charge(Work::copy, random() % 100'000);
      co_await yield();
    }
  }

  // What an operation found is for the history to say; here only whether the connection holds.
  static bool connected(const auto& result) {
    expect_space(result);
    return result || result.error() != kv::Error::disconnected;
  }
  static Task<bool> put(kv::KvSession& session, std::uint64_t number, std::uint64_t version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version, kValue);
    co_return connected(co_await session.put(key, value));
  }

  std::unique_ptr<Platform> made_;
  faults::FaultPlan faults_;
  kv::KvConfig config_;

 public:
  SimPlatform& platform;
  faults::FaultCounts counts;  // of the clients
  Recording recording{128};
  Gauge gauge;
  std::vector<Time> power_failures;

 private:
  int clients_ = 0;
  std::array<unsigned, 4> busy_{};  // seeds, by node; 0 is idle
  int writer_step_ = 0;
  int other_step_ = 0;
};

// What the server had done of cleaning when it failed, or at the end.
struct Met {
  std::uint64_t during = 0;  // runs
  std::uint64_t after = 0;   // at least one
  void note(const Gauge& gauge) {
    const kv::KvSpace space = gauge.now();
    during += space.cleanings_now;
    after += space.cleanings > 0 ? 1 : 0;
  }
};

// Each exploration tries every moment, or all of them together try each once.
enum class Moments : std::uint8_t { every, shared };
enum class Times : std::uint8_t { once, twice };

void fail_power_everywhere(PersistenceModel model, const kv::KvConfig& config,
                           Moments moments = Moments::every, Times times = Times::once) {
  std::uint64_t runs = 0;
  std::uint64_t twice_failed = 0;
  Explored explored;
  Met met;
  const std::array kinds{ExploreOptions{.images = Images::least},
                         ExploreOptions{.images = Images::most},
                         ExploreOptions{.images = Images::random, .seed = 1}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ExploreOptions options = kinds[i];
    // The second failure is at another moment in each run, so that no two runs are the same.
    if (times == Times::once) options.before = &explored;
    if (moments == Moments::shared) {
      options.first = i;
      options.stride = kinds.size();
    }
    explored = explore_until_failure(options, [&](Failure& failure) {
      SCOPED_TRACE(failure.text());
      Scenario scenario(model, {}, config);
      const auto fail = [&](pmem::Choices& choices) {
        scenario.power_failures.push_back(scenario.platform.engine().now());
        scenario.platform.fail_power(kServer, choices);
        scenario.start_server();
      };
      failure.watch(scenario.platform, [&](pmem::Choices& choices) {
        met.note(scenario.gauge);
        fail(choices);
        if (times == Times::once) return scenario.start_late_reader();
        // Again, from at once to some time after the recovery.
        const Time again =
            scenario.platform.engine().now() + Nanoseconds(twice_failed++ * 617 % 30'000);
        scenario.platform.start(kLate, 90, CompletionMode::polling,
                                [again](Thread&) -> Task<> { co_await sleep_until(again); });
        scenario.platform.at(again, [&] {
          fail(choices);
          scenario.start_late_reader();
        });
      });
      scenario.platform.run();
      scenario.expect_promised({.undone = history::Promise::Undone::last_version});
    });
    runs += explored.runs;
    // The first exploration skips no moment.
    if (options.images == Images::least) {
      EXPECT_GT(met.during, runs / 5);
    }
    if (testing::Test::HasFailure()) return;
  }
  std::cout << to_string(model.domain) << (times == Times::twice ? ", twice" : "") << ": "
            << explored.crash_points << " moments, " << runs << " recoveries; " << met.during
            << " of them in the middle of a cleaning, " << met.after << " after one\n";
  EXPECT_GT(met.after, 0U);
}

constexpr PersistenceModel kVolatileCaches{PersistenceDomain::dmp, false};
constexpr PersistenceModel kVolatileCachesAndDdio{PersistenceDomain::dmp, true};
constexpr PersistenceModel kPersistentCaches{PersistenceDomain::mhp, true};

TEST(CleaningFailures, PowerFailsAnywhereWithVolatileCaches) {
  fail_power_everywhere(kVolatileCaches, persisting(kOneCleaning));
}

TEST(CleaningFailures, PowerFailsAnywhereWithVolatileCachesAndDdio) {
  fail_power_everywhere(kVolatileCachesAndDdio, persisting(kOneCleaning));
}

TEST(CleaningFailures, PowerFailsAnywhereWithPersistentCaches) {
  fail_power_everywhere(kPersistentCaches, kOneCleaning);
}

TEST(CleaningFailures, PowerFailsAnywhereInCleaningAfterCleaning) {
  fail_power_everywhere(kVolatileCaches, persisting(always_cleaning()), Moments::shared);
}

TEST(CleaningFailures, PowerFailsAgainAfterRecovery) {
  fail_power_everywhere(kVolatileCaches, persisting(kOneCleaning), Moments::every, Times::twice);
}

// The process dies, memory stays: nothing acknowledged is lost.
TEST(CleaningFailures, TheServerDiesAnywhere) {
  const Explored explored = explore_until_failure({}, [&](Failure& failure) {
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
  std::cout << "the server died at each of " << explored.crash_points << " moments\n";
}

TEST(CleaningFailures, AClientDiesAnywhere) {
  std::uint64_t moments = 0;
  for (const NodeId client : {kWriter, kOther}) {
    moments += explore_until_failure({}, [&](Failure& failure) {
                 SCOPED_TRACE(failure.text());
                 Scenario scenario({PersistenceDomain::mhp, true});
                 failure.watch(scenario.platform, [&](pmem::Choices&) {
                   scenario.platform.kill(client);
                   scenario.start_late_reader();
                 });
                 scenario.platform.run();
                 scenario.expect_promised({});
               }).crash_points;
  }
  std::cout << "a client died at each of " << moments << " moments\n";
}

TEST(CleaningFailures, AClientConnectsAnywhere) {
  const Explored explored = explore_until_failure({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    Scenario scenario({PersistenceDomain::mhp, true});
    failure.watch(scenario.platform, [&](pmem::Choices&) {
      scenario.start(kLate, [](kv::KvSession& session, Thread&) -> Task<> {
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
  std::cout << "a client connected at each of " << explored.crash_points << " moments\n";
}

// Notices, answers and requests come late or twice, clients take their time between the operations
// of a get or put, connections break.
void go_wrong(const std::string& faults) {
  faults::FaultCounts counts;
  std::uint64_t cleanings = 0;
  for (int seed = 1; seed <= 60; ++seed) {
    const auto plan = faults::FaultPlan::parse("seed=" + std::to_string(seed) + " " + faults);
    SCOPED_TRACE(plan.text());
    Scenario scenario({PersistenceDomain::mhp, true}, plan);
    scenario.start_late_reader();
    scenario.platform.run();
    scenario.expect_promised({});
    if (testing::Test::HasFailure()) return;
    counts.held += scenario.counts.held;
    counts.duplicated += scenario.counts.duplicated;
    counts.lost += scenario.counts.lost;
    cleanings += scenario.gauge.last().cleanings;
  }
  std::cout << faults << ": " << counts.held << " messages late, " << counts.duplicated
            << " repeated, " << counts.lost << " connections lost, " << cleanings << " cleanings\n";
  EXPECT_GT(cleanings, 60U);
}

// A client whose thread is busy finds an answer and a notice together.
TEST(CleaningFailures, BusyClients) {
  std::uint64_t cleanings = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Scenario scenario(kPersistentCaches);
    for (const NodeId node : {kWriter, kOther}) scenario.keep_busy(node, seed);
    scenario.start_late_reader();
    scenario.platform.run();
    scenario.expect_promised({});
    if (HasFailure()) return;
    cleanings += scenario.gauge.last().cleanings;
  }
  EXPECT_GT(cleanings, 60U);
}

TEST(CleaningFailures, LateMessages) { go_wrong("hold=0.3 held=1us..100us"); }
TEST(CleaningFailures, RepeatedMessages) { go_wrong("duplicate=0.5"); }
TEST(CleaningFailures, SlowClients) { go_wrong("slow=0ns..40us"); }
TEST(CleaningFailures, AllOfThat) {
  go_wrong("hold=0.2 held=1us..60us duplicate=0.2 slow=0ns..15us");
}
TEST(CleaningFailures, LostConnections) { go_wrong("lose=0.01"); }

}  // namespace
}  // namespace perdura::systems::test
