// Clients die, lose their connections, and are slow: the others see the old or the new value, never
// a mix, and the store goes on.
#include "platform/faults/faulty_thread.h"
#include "platform/sim/failures.h"
#include "systems/registry/registry.h"
#include "tests/systems/faults/history.h"

namespace perdura::systems::test {
namespace {

using faults::DeathStep;
using faults::FaultPlan;
using faults::FaultyThread;
using perdura::sim::explore_failures;
using perdura::sim::Explored;
using perdura::sim::Failure;
using perdura::sim::SimPlatform;

class FaultyClients : public testing::TestWithParam<Subject> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }

  Platform::Body server() {
    return [this](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", small_config(system()));
      co_await partition->serve();
    };
  }

  // Reads a key again and again until `stop` says so some time ago: it is whole, and never goes
  // back to an older version.
  Task<> watch(kv::KvSession& session, std::uint64_t number, const Known& known, const bool& stop) {
    std::uint64_t seen = 0;
    for (int after = 0; after < 10; after += stop ? 1 : 0) {
      const std::uint64_t floor = std::max(seen, known.acknowledged);
      const auto version = co_await version_in(session, number);
      EXPECT_GE(version.value_or(0), floor);
      EXPECT_LE(version.value_or(0), known.uncertain);
      seen = std::max(seen, version.value_or(0));
      co_await sleep_for(Microseconds(1));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, FaultyClients, testing::ValuesIn(systems_on_sim()), subject_name);

// Every moment of two updates, wherever the client is with them.
TEST_P(FaultyClients, AClientThatDiesAnywhereInAPutLeavesOldOrNew) {
  std::uint64_t cut_off = 0;
  const Explored explored = explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<SimPlatform&>(*made);
    Known known;
    bool over = false;
    failure.enable(false);
    platform.start_service(0, 0, CompletionMode::polling, server());
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, small_config(system()));
      for (std::uint64_t version = 1; version <= 3; ++version) {
        failure.enable(version > 1);
        known.begin(version);
        EXPECT_TRUE((co_await write_version(system(), *session, 7, version)).has_value());
        known.end();
      }
      failure.enable(false);
      over = true;
      co_await sleep_for(std::chrono::seconds(100));
    });
    for (const NodeId node : {2, 3}) {
      platform.start(node, 2, CompletionMode::polling, [&, node](Thread& thread) -> Task<> {
        const auto session = co_await system().connect(thread, {0, 0}, small_config(system()));
        co_await watch(*session, 7, known, over);
        if (node != 2) co_return;
        known.begin(9);
        EXPECT_TRUE((co_await write_version(system(), *session, 7, 9)).has_value());
        EXPECT_EQ(co_await version_in(*session, 7), 9U);
        co_await write_all(system(), *session, 4, 10);
      });
    }
    failure.watch(platform, [&](pmem::Choices&) {
      if (known.acknowledged != known.uncertain) ++cut_off;
      platform.kill(1);
      over = true;
    });
    platform.run();
  });
  std::cout << GetParam() << ": " << explored.crash_points << " moments, " << cut_off
            << " in the middle of a put\n";
  EXPECT_GT(explored.crash_points, 50U);
  EXPECT_GT(cut_off, explored.crash_points / 2);
}

// The same by steps of the fabric: before an operation is posted, at moments of its way, behind it.
TEST_P(FaultyClients, AClientThatDiesAtAnyOperationLeavesOldOrNew) {
  std::vector<FaultPlan> plans;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  auto run = [&](const FaultPlan& plan) {
    SCOPED_TRACE(plan.text());
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<SimPlatform&>(*made);
    Known known;
    bool over = false;
    platform.start_service(0, 0, CompletionMode::polling, server());
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      FaultyThread faulty(thread, plan, [&](Picoseconds after) {
        platform.at(platform.engine().now() + after, [&] {
          platform.kill(1);
          over = true;
        });
      });
      const auto session =
          co_await system().connect(faulty.thread(), {0, 0}, small_config(system()));
      for (std::uint64_t version = 1; version <= 2; ++version) {
        first = faulty.counts().operations + 1;
        known.begin(version);
        EXPECT_TRUE((co_await write_version(system(), *session, 7, version)).has_value());
        known.end();
      }
      last = faulty.counts().operations;
      over = plan.die_at == 0;
      co_await sleep_for(std::chrono::seconds(100));
    });
    platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, small_config(system()));
      co_await watch(*session, 7, known, over);
      co_await write_all(system(), *session, 8, 10);
    });
    platform.run();
  };
  run({});
  ASSERT_GE(last, first);
  for (std::uint64_t operation = first; operation <= last; ++operation) {
    plans.push_back({.die_at = operation, .die_when = DeathStep::before_post});
    plans.push_back({.die_at = operation, .die_when = DeathStep::at_completion});
    for (Nanoseconds after{}; after < Microseconds(5); after += Nanoseconds(100)) {
      plans.push_back({.die_at = operation, .die_when = DeathStep::after_post, .die_after = after});
    }
  }
  for (const FaultPlan& plan : plans) run(plan);
  std::cout << GetParam() << ": " << last - first + 1 << " operations, " << plans.size()
            << " deaths\n";
}

// A client loses its connection at each of its operations, connects again, and does again what may
// not have been done.
TEST_P(FaultyClients, AClientThatLosesItsConnectionGoesOnWithANewOne) {
  constexpr std::array<std::uint64_t, 6> kVersions{1, 2, 0, 4, 5, 6};
  std::uint64_t operations = 0;
  std::uint64_t losses = 0;
  auto run = [&](const FaultPlan& plan) {
    SCOPED_TRACE(plan.text());
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<SimPlatform&>(*made);
    Known known;
    bool over = false;
    platform.start_service(0, 0, CompletionMode::polling, server());
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      FaultyThread faulty(thread, plan);
      auto session = co_await try_connect(system(), faulty.thread());
      for (const std::uint64_t version : kVersions) {
        known.begin(version);
        for (int attempt = 0;; ++attempt) {
          EXPECT_LT(attempt, 10);
          if (attempt == 10) break;
          if (session != nullptr) {
            const auto done = co_await write_version(system(), *session, 7, version);
            if (done) break;
            EXPECT_EQ(done.error(), kv::Error::disconnected) << to_string(done.error());
          }
          session = co_await try_connect(system(), faulty.thread());
        }
        known.end();
      }
      operations = faulty.counts().operations;
      losses += faulty.counts().lost;
      over = true;
    });
    platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, small_config(system()));
      while (!over) {
        co_await version_in(*session, 7);
        co_await sleep_for(Microseconds(1));
      }
      EXPECT_EQ(co_await version_in(*session, 7), kVersions.back());
      co_await write_all(system(), *session, 8, 10);
    });
    platform.run();
  };
  run({});
  const std::uint64_t last = operations;
  for (std::uint64_t operation = 1; operation <= last; ++operation) run({.lose_at = operation});
  EXPECT_EQ(losses, last);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) run({.seed = seed, .lose = 0.04});
  EXPECT_GT(losses, last);
  std::cout << GetParam() << ": " << last << " operations, " << losses << " connections lost\n";
}

// Clients and the server's answers are late, each in its own way: every read is one of what was
// acknowledged before it began and what was under way before it ended.
TEST_P(FaultyClients, SlowClientsAndLateMessagesChangeNothing) {
  constexpr std::uint64_t kClients = 3;
  constexpr std::uint64_t kKeys = 2 * kClients;
  std::uint64_t held = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const FaultPlan plan{.seed = seed,
                         .hold = 0.3,
                         .held = {Microseconds(1), Microseconds(60)},
                         .slow = {Picoseconds(0), Microseconds(15)}};
    const FaultPlan server_plan{
        .seed = seed, .hold = 0.3, .held = {Microseconds(1), Microseconds(60)}};
    SCOPED_TRACE(plan.text());
    const auto platform = perdura::test::make_platform("sim", 4);
    std::array<Known, kKeys> known{};
    platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      FaultyThread faulty(thread, server_plan);
      const auto partition = system().open(faulty.thread(), "pool", small_config(system()));
      co_await partition->serve();
    });
    for (std::uint64_t client = 0; client < kClients; ++client) {
      platform->start(
          static_cast<NodeId>(1 + client), 1, CompletionMode::polling,
          [&, client](Thread& thread) -> Task<> {
            FaultyThread faulty(thread, plan);
            const auto session =
                co_await system().connect(faulty.thread(), {0, 0}, small_config(system()));
            for (std::uint64_t version = 1; version <= 20; ++version) {
              const std::uint64_t own = client + kClients * (version % 2);
              known[own].begin(version);
              EXPECT_TRUE((co_await write_version(system(), *session, own, version)).has_value());
              known[own].end();
              const std::uint64_t other = (client + version) % kKeys;
              const std::uint64_t floor = known[other].acknowledged;
              const auto found = co_await version_in(*session, other);
              EXPECT_GE(found.value_or(0), floor) << "key " << other;
              EXPECT_LE(found.value_or(0), known[other].uncertain) << "key " << other;
            }
            held += faulty.counts().held;
          });
    }
    platform->run();
  }
  std::cout << GetParam() << ": 20 seeds, " << held << " messages held back\n";
  EXPECT_GT(held, 100U);
}

}  // namespace
}  // namespace perdura::systems::test
