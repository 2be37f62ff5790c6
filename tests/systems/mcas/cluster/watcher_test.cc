// Joins, leaves and failures of members on the simulator: who is dead is reported by all who live,
// nobody else is, and all agree on the order of a member's lives (MCAS, section 5).
#include "systems/mcas/cluster/watcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "platform/faults/faulty_thread.h"
#include "platform/sim/sim_platform.h"
#include "systems/mcas/cluster/beacon.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::systems::mcas::cluster {
namespace {

constexpr NodeId kMembers = 4;
constexpr fabric::Port kPort = 1;
constexpr Timing kTiming{.heartbeat = Microseconds(100), .patience = Microseconds(1000)};

std::string name_of(NodeId node) { return "member " + std::to_string(node); }

struct Seen {
  Event event;
  Time when;
};

// Members on nodes 0 to kMembers - 1, each of which watches all others.
class ClusterRun {
 public:
  explicit ClusterRun(faults::FaultPlan plan = {})
      : made_(perdura::test::make_platform("sim", kMembers + 1)), plan_(std::move(plan)) {}

  perdura::sim::SimPlatform& platform() { return static_cast<perdura::sim::SimPlatform&>(*made_); }
  void start(NodeId node) {
    seen_[node].clear();  // a new process knows nothing
    platform().start_service(node, kPort, CompletionMode::event,
                             [this, node](Thread& thread) { return take_part(thread, node); });
  }
  void kill(NodeId node) { platform().kill(node); }
  void at(Picoseconds when, std::function<void()> what) {
    platform().at(Time(when), std::move(what));
  }
  // The member says that it leaves; its process ends some time later.
  void leave(NodeId node) { leaving_[node] = true; }
  void run(Picoseconds duration) {
    platform().start(kMembers, 0, CompletionMode::event,
                     [duration](Thread&) -> Task<> { co_await sleep_for(duration); });
    platform().run();
  }
  const std::vector<Seen>& seen(NodeId by) const { return seen_[by]; }
  // What a member has been told of another one.
  std::vector<Seen> seen(NodeId by, NodeId of) const {
    std::vector<Seen> result;
    for (const Seen& seen : seen_[by]) {
      if (seen.event.member == name_of(of)) result.push_back(seen);
    }
    return result;
  }

 private:
  Task<> take_part(Thread& inner, NodeId node) {
    faults::FaultyThread faulty(inner, plan_);
    Thread& thread = faulty.thread();
    const auto beacon = std::make_shared<Beacon>(thread, kTiming, ++lives_);
    thread.executor.spawn(beacon->serve());
    Watcher watcher(thread, kTiming, [&, node](const Event& event) {
      seen_[node].push_back({event, thread.executor.now()});
    });
    for (NodeId other = 0; other < kMembers; ++other) {
      if (other != node) watcher.add({name_of(other), {other, kPort}});
    }
    while (!leaving_[node]) co_await sleep_for(Microseconds(10));
    co_await beacon->leave();
    WaitList never;
    co_await wait(never);
  }

  std::unique_ptr<Platform> made_;
  faults::FaultPlan plan_;
  Life lives_ = 0;  // that have begun
  std::array<bool, kMembers> leaving_{};
  std::array<std::vector<Seen>, kMembers> seen_;
};

// That each has been told once that each other one has joined, and nothing else.
void expect_only_joins(const ClusterRun& run) {
  for (NodeId by = 0; by < kMembers; ++by) {
    for (NodeId of = 0; of < kMembers; ++of) {
      if (of == by) continue;
      const auto seen = run.seen(by, of);
      ASSERT_EQ(seen.size(), 1U) << by << " of " << of << ", the last: "
                                 << (seen.empty() ? "" : to_string(seen.back().event.what));
      EXPECT_EQ(seen[0].event.what, What::joined);
    }
  }
}

TEST(Cluster, AllJoinAndNobodyFails) {
  ClusterRun run;
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  run.run(50 * kTiming.patience);
  expect_only_joins(run);
}

// Wherever it dies, also while it joins: a process lives long enough to be seen, or is never seen.
TEST(Cluster, AllWhoLiveReportTheDeadAndNobodyElse) {
  int reported = 0;
  for (int moment = 0; moment < 60 && !testing::Test::HasFailure(); ++moment) {
    SCOPED_TRACE(testing::Message() << "moment " << moment);
    constexpr NodeId kDead = 2;
    ClusterRun run;
    for (NodeId node = 0; node < kMembers; ++node) run.start(node);
    const Picoseconds death = moment < 40 ? Picoseconds(Microseconds(1)) * (moment + 1)
                                          : Picoseconds(Microseconds(37)) * moment;
    run.at(death, [&] { run.kill(kDead); });
    run.run(10 * kTiming.patience);
    for (NodeId by = 0; by < kMembers; ++by) {
      if (by == kDead) continue;
      for (const Seen& seen : run.seen(by)) {
        EXPECT_TRUE(seen.event.member == name_of(kDead) || seen.event.what == What::joined);
      }
      const auto seen = run.seen(by, kDead);
      if (seen.empty()) continue;  // it died before it was heard
      ASSERT_EQ(seen.size(), 2U);
      EXPECT_EQ(seen[0].event.what, What::joined);
      EXPECT_EQ(seen[1].event.what, What::failed);
      EXPECT_EQ(seen[1].event.life, seen[0].event.life);
      // A heartbeat may have been on its way when it died.
      EXPECT_GE(seen[1].when, Time(death) + kTiming.patience - kTiming.heartbeat * 2);
      EXPECT_LE(seen[1].when, Time(death) + kTiming.patience + kTiming.heartbeat);
      ++reported;
    }
  }
  EXPECT_GE(reported, 3 * 20) << "it hardly ever joined";
}

// Each operation of each member breaks its connection, now and then or every time: whoever can be
// reached again within the patience has not failed.
TEST(Cluster, ACutLinkIsNoFailure) {
  for (const double lose : {0.02, 0.3, 1.0}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(testing::Message() << "lose " << lose << ", seed " << seed);
      ClusterRun run({.seed = seed, .lose = lose});
      for (NodeId node = 0; node < kMembers; ++node) run.start(node);
      run.run(20 * kTiming.patience);
      expect_only_joins(run);
    }
  }
}

// Links are cut at any time, many at once.
TEST(Cluster, NorAreManyCutLinks) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  ClusterRun run;
  std::size_t cut = 0;
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  for (int i = 0; i < 300; ++i) {
    const NodeId a = random() % kMembers;
    const NodeId b = (a + 1 + random() % (kMembers - 1)) % kMembers;
    run.at(Picoseconds(Microseconds(random() % 20'000)), [&run, &cut, a, b] {
      cut += run.platform().break_connections({a, kPort}, {b, kPort});
    });
  }
  run.run(30 * kTiming.patience);
  EXPECT_GT(cut, 100U);
  expect_only_joins(run);
}

TEST(Cluster, LateMessagesAreNoFailureWithinThePatience) {
  ClusterRun run({.seed = 3, .hold = 0.5, .held = {Microseconds(1), Microseconds(700)}});
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  run.run(50 * kTiming.patience);
  expect_only_joins(run);
}

// A message that is held up longer than the patience: the same life is unreachable, and joins
// again.
TEST(Cluster, WhoIsSilentForTooLongFailsAndJoinsAgain) {
  ClusterRun run({.seed = 3, .hold = 0.05, .held = {Microseconds(1500), Microseconds(3000)}});
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  run.run(50 * kTiming.patience);
  int failures = 0;
  for (NodeId by = 0; by < kMembers; ++by) {
    for (NodeId of = 0; of < kMembers; ++of) {
      const auto seen = run.seen(by, of);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].event.what, i % 2 == 0 ? What::joined : What::failed);
        EXPECT_EQ(seen[i].event.life, seen[0].event.life);
        failures += i % 2 == 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(failures, 10);
}

TEST(Cluster, WhoLeavesHasNotFailed) {
  ClusterRun run;
  constexpr NodeId kLeaves = 1;
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  run.at(3 * kTiming.patience, [&] { run.leave(kLeaves); });
  run.at(4 * kTiming.patience, [&] { run.kill(kLeaves); });
  run.run(20 * kTiming.patience);
  for (NodeId by = 0; by < kMembers; ++by) {
    if (by == kLeaves) continue;
    const auto seen = run.seen(by, kLeaves);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[1].event.what, What::left);
    EXPECT_LE(seen[1].when, Time(3 * kTiming.patience) + kTiming.heartbeat);
  }
}

// A member is killed and started again, at once or much later: all who live all the time are told
// the same of it, life by life.
TEST(Cluster, AllAgreeOnTheOrderOfLives) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr NodeId kRestarts = 0;
  ClusterRun run;
  for (NodeId node = 0; node < kMembers; ++node) run.start(node);
  Picoseconds now = 2 * kTiming.patience;
  constexpr int kLives = 12;
  for (int life = 1; life < kLives; ++life) {
    run.at(now, [&] { run.kill(kRestarts); });
    now += Picoseconds(Microseconds(50 + random() % 3000));
    run.at(now, [&] { run.start(kRestarts); });
    now += 2 * kTiming.patience;
  }
  run.run(now + 5 * kTiming.patience);
  const auto expected = run.seen(1, kRestarts);
  ASSERT_EQ(expected.size(), 2U * kLives - 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].event.what, i % 2 == 0 ? What::joined : What::failed);
    EXPECT_EQ(i % 2 == 0, i == 0 || expected[i].event.life > expected[i - 1].event.life);
    for (NodeId by = 2; by < kMembers; ++by) {
      const auto seen = run.seen(by, kRestarts);
      ASSERT_EQ(seen.size(), expected.size());
      EXPECT_EQ(seen[i].event.what, expected[i].event.what);
      EXPECT_EQ(seen[i].event.life, expected[i].event.life);
    }
  }
  // And it, in its last life, has been told of all others.
  for (NodeId of = 1; of < kMembers; ++of) EXPECT_EQ(run.seen(kRestarts, of).size(), 1U);
}

}  // namespace
}  // namespace perdura::systems::mcas::cluster
