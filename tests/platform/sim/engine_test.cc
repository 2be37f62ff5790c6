#include "platform/sim/kernel/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace perdura::sim {
namespace {

struct Recorder final : Event {
  int id = 0;
  std::vector<int>* order = nullptr;
  void fire() override { order->push_back(id); }
};

// Against a stable sort by time, for many random schedules.
TEST(Engine, FiresInOrderOfTimeAndThenOfScheduling) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int count = 1 + static_cast<int>(random() % 300);
    Engine engine;
    std::vector<int> order;
    std::vector<Recorder> events(count);
    std::vector<std::pair<int, int>> expected;
    for (int i = 0; i < count; ++i) {
      const int when = static_cast<int>(random() % 20);
      events[i].id = i;
      events[i].order = &order;
      engine.schedule(Time(Picoseconds(when)), events[i]);
      expected.emplace_back(when, i);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    while (engine.step()) {
    }
    ASSERT_EQ(order.size(), expected.size());
    for (int i = 0; i < count; ++i) EXPECT_EQ(order[i], expected[i].second);
  }
}

// The same while the engine runs: every event that fires schedules none, one or several others, at
// this instant, in the past, later or much later, so that the number that is pending rises and
// falls. Some wait in line, of those a few for a shorter time than others before them, or for none.
TEST(Engine, KeepsTheOrderWhileEventsScheduleOthers) {
  using Moment = std::pair<std::int64_t, std::uint64_t>;  // time, number of the scheduling
  struct Walker final : Event {
    Moment moment;
    std::vector<Walker*>* fired = nullptr;
    void fire() override { fired->push_back(this); }
  };
  std::size_t most_pending = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const std::int64_t range = seed % 2 == 0 ? 50 : 100000;  // many ties, few ties
    Engine engine;
    std::deque<Walker> walkers;
    std::vector<Walker*> fired;
    std::set<Moment> pending;
    std::uint64_t number = 0;
    const auto schedule = [&] {
      const std::int64_t now = engine.now().time_since_epoch().count();
      const std::int64_t far = random() % 8 == 0 ? 1'000'000'000 : 1;
      const auto later = static_cast<std::int64_t>(random() % static_cast<unsigned>(range)) * far;
      const bool in_line = random() % 3 == 0;
      const std::int64_t delay = random() % 16 == 0 ? later / 8 : range / 2;
      const std::int64_t when =
          in_line ? now + delay : std::max<std::int64_t>(0, now + later - range / 8);
      Walker& walker = walkers.emplace_back();
      walker.fired = &fired;
      walker.moment = {std::max(when, now), number++};
      pending.insert(walker.moment);
      if (in_line) {
        engine.schedule_in_line(Picoseconds(delay), walker);
      } else {
        engine.schedule(Time(Picoseconds(when)), walker);
      }
    };
    for (int i = 0; i < 5; ++i) schedule();
    for (int steps = 0; steps < 5000 && !pending.empty(); ++steps) {
      ASSERT_TRUE(engine.step());
      ASSERT_EQ(fired.back()->moment, *pending.begin());
      EXPECT_EQ(engine.now().time_since_epoch().count(), pending.begin()->first);
      pending.erase(pending.begin());
      const unsigned growing = steps % 1000 < 500 ? 4 : 1;
      for (unsigned n = random() % (growing + 1); n > 0 || pending.empty(); --n) {
        schedule();
        if (n == 0) break;
      }
      most_pending = std::max(most_pending, pending.size());
    }
    EXPECT_EQ(engine.fired(), fired.size());
  }
  EXPECT_GT(most_pending, 1000U) << "the heap never grew";
}

// An event that schedules another for the same instant comes behind all that was already due.
TEST(Engine, WhatIsScheduledForThisInstantComesLast) {
  struct Chained final : Event {
    Engine* engine;
    Recorder* next;
    std::vector<int>* order;
    void fire() override {
      order->push_back(0);
      engine->schedule(engine->now(), *next);
    }
  };
  Engine engine;
  std::vector<int> order;
  Recorder later;
  later.id = 2;
  later.order = &order;
  Recorder due;
  due.id = 1;
  due.order = &order;
  Chained first;
  first.engine = &engine;
  first.next = &later;
  first.order = &order;
  engine.schedule(Time(Picoseconds(5)), first);
  engine.schedule(Time(Picoseconds(5)), due);
  while (engine.step()) {
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace perdura::sim
