#include "platform/sim/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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
