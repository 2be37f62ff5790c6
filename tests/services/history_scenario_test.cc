// The record of calls that scenarios of services with a sequential specification share.
#include "services/history_scenario.h"

#include <gtest/gtest.h>

#include <optional>

#include "platform/sim/sim_platform.h"

namespace perdura::services {
namespace {

constexpr Picoseconds kForEver = std::chrono::seconds(1);

// A counter, of which a call adds one and is told the sum.
struct Counter {
  using State = std::uint64_t;
  struct Operation {
    std::uint64_t told = 0;
  };
  State initial() const { return 0; }
  std::vector<State> after(State state, const Operation& operation, bool answered) const {
    if (answered && operation.told != state + 1) return {};
    return {state + 1};
  }
  std::vector<State> after_failure(State state) const { return {state}; }
  bool changes(const Operation&) const { return true; }
  std::string text(const Call<Operation>& call) const {
    return fmt::format("told {}", call.operation.told);
  }
};

// The client's first call is answered, and its second one never is; the inspector's are answered.
class CounterScenario final : public HistoryScenario<Counter> {
 public:
  std::uint32_t clients() const override { return 1; }
  std::uint64_t planned_calls(std::size_t) const override { return 2; }
  Task<> serve(Thread&) override { co_return; }
  Task<> use(Thread&, std::uint32_t number) override {
    count(number);
    const Calling calling(*this, {}, number);
    co_await sleep_for(kForEver);
  }
  Task<> inspect(Thread&) override {
    count(inspector());
    co_return;
  }
  void explain(const Call<Operation>& call, CrashCall& shown) const override {
    shown.told = fmt::format("{}", call.operation.told);
  }
  void count(std::uint32_t client) {
    Calling calling(*this, {}, client);
    calling.operation().told = ++sum_;
    calling.end();
  }

 private:
  std::uint64_t sum_ = 0;
};

class HistoryScenarios : public testing::Test {
 protected:
  // The client's node is 1, the inspector's 2.
  void start(NodeId node, std::function<Task<>(Thread&)> work) {
    platform_.start(node, 1, CompletionMode::polling, std::move(work));
  }
  void run_client_until_it_dies() {
    start(1, [this](Thread& thread) { return scenario_.use(thread, 0); });
    platform_.at(Time() + Microseconds(2), [this] { waited_ = scenario_.waits_for_operation(); });
    platform_.at(Time() + Microseconds(3), [this] {
      platform_.kill(1);
      waits_ = scenario_.waits_for_operation();
    });
    platform_.run();
  }

  CounterScenario scenario_;
  std::optional<bool> waited_;
  std::optional<bool> waits_;
  sim::SimPlatform platform_{sim::Profile{}, 3};
};

// An exploration gives up a run in which someone waits for long. A dead client waits for nothing.
TEST_F(HistoryScenarios, ACallIsUnderWayAsLongAsItsClientLives) {
  run_client_until_it_dies();
  EXPECT_EQ(waited_, true);
  EXPECT_EQ(waits_, false);
  const std::vector<CrashCall> calls = scenario_.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_TRUE(calls[0].answered());
  EXPECT_EQ(calls[0].told, "1");
  EXPECT_FALSE(calls[1].answered());
}

// Inspections of one failure that have observed the same get the same verdict, so what they have
// observed must tell all answers apart, and must be forgotten in between.
TEST_F(HistoryScenarios, WhatAnInspectionObservedIsDroppedBeforeTheNextOne) {
  run_client_until_it_dies();
  scenario_.take_snapshot();
  const std::string nothing = scenario_.observations();
  std::vector<std::string> observed;
  start(2, [&](Thread&) -> Task<> {
    for (int inspection = 0; inspection < 2; ++inspection) {
      scenario_.count(1);
      observed.push_back(scenario_.observations());
      scenario_.restore_snapshot();
      EXPECT_EQ(scenario_.observations(), nothing);
    }
    co_return;
  });
  platform_.run();
  ASSERT_EQ(observed.size(), 2U);
  EXPECT_NE(observed[0], nothing);
  EXPECT_NE(observed[0], observed[1]) << "the second one was told another sum";
  EXPECT_EQ(scenario_.calls().size(), 2U);
}

}  // namespace
}  // namespace perdura::services
