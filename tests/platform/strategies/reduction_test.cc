// Leaving out equivalent interleavings loses no outcome.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "platform/strategies/exhaustive.h"
#include "platform/strategies/random.h"
#include "platform/strategies/sleep_sets.h"
#include "tests/platform/strategies/toy_program.h"
#include "tests/support/seed.h"

namespace perdura::strategies::test {
namespace {

using Kind = ToyStep::Kind;

struct Outcomes {
  std::set<std::string> all;
  std::uint64_t runs = 0;
};

Outcomes of_all(const ToyProgram& program) {
  Outcomes outcomes;
  Exhaustive all;
  while (all.next()) outcomes.all.insert(ToyRun(program).finish(all));
  outcomes.runs = all.runs();
  return outcomes;
}

Outcomes by_states(const ToyProgram& program) {
  Outcomes outcomes;
  Exhaustive all;
  while (all.next()) {
    ToyRun run(program);
    all.watch([&run] { return run.state(); });
    try {
      outcomes.all.insert(run.finish(all));
    } catch (const Exhaustive::StateIsKnown&) {
    }
  }
  outcomes.runs = all.runs();
  return outcomes;
}

Outcomes by_sleep_sets(const ToyProgram& program) {
  Outcomes outcomes;
  SleepSets all;
  while (all.next()) {
    try {
      outcomes.all.insert(ToyRun(program).finish(all));
    } catch (const SleepSets::Equivalent&) {
    }
  }
  outcomes.runs = all.runs();
  return outcomes;
}

ToyProgram random_program(pmem::Choices& choices) {
  ToyProgram program;
  program.variables = 3;
  program.threads.resize(2 + choices.choose(2));
  for (auto& thread : program.threads) {
    thread.resize(1 + choices.choose(3));
    for (ToyStep& step : thread) {
      step = {static_cast<Kind>(choices.choose(4)),
              static_cast<std::uint32_t>(choices.choose(program.variables)),
              static_cast<int>(1 + choices.choose(3))};
    }
  }
  return program;
}

TEST(Reduction, FindsTheOutcomesOfAllRuns) {
  const std::uint64_t first = perdura::test::random_seed();
  std::uint64_t runs = 0;
  std::uint64_t of_states = 0;
  std::uint64_t of_sleep_sets = 0;
  for (std::uint64_t seed = first; seed < first + 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    pmem::RandomChoices choices(seed);
    const ToyProgram program = random_program(choices);
    const Outcomes all = of_all(program);
    const Outcomes states = by_states(program);
    const Outcomes sleep_sets = by_sleep_sets(program);
    ASSERT_EQ(states.all, all.all);
    ASSERT_EQ(sleep_sets.all, all.all);
    EXPECT_LE(states.runs, all.runs);
    EXPECT_LE(sleep_sets.runs, all.runs);
    runs += all.runs;
    of_states += states.runs;
    of_sleep_sets += sleep_sets.runs;
  }
  RecordProperty("runs", std::to_string(runs));
  RecordProperty("runs with states", std::to_string(of_states));
  RecordProperty("runs with sleep sets", std::to_string(of_sleep_sets));
  EXPECT_LT(of_states, runs / 2);
  EXPECT_LT(of_sleep_sets, runs / 2);
}

// Three threads of three steps that touch nothing in common end alike in each of 9!/3!^3 orders.
TEST(Reduction, IndependentThreadsNeedOneRun) {
  ToyProgram program{3, {}};
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    program.threads.push_back(
        {{Kind::load, thread, 0}, {Kind::add, thread, 1}, {Kind::add, thread, 2}});
  }
  EXPECT_EQ(of_all(program).runs, 1680U);
  SleepSets all;
  std::uint64_t ended = 0;
  while (all.next()) {
    try {
      ToyRun(program).finish(all);
      ++ended;
    } catch (const SleepSets::Equivalent&) {
    }
  }
  EXPECT_EQ(ended, 1U);
  EXPECT_EQ(ended + all.cut(), all.runs());
}

// Of steps that all touch the same, every order counts.
TEST(Reduction, DependentStepsAreNotLeftOut) {
  const ToyProgram program{
      1, {{{Kind::load, 0, 0}, {Kind::add, 0, 1}}, {{Kind::load, 0, 0}, {Kind::add, 0, 1}}}};
  EXPECT_EQ(by_sleep_sets(program).runs, of_all(program).runs);
}

TEST(RandomRuns, AreRepeatedByTheirSeeds) {
  const ToyProgram program{1,
                           {{{Kind::load, 0, 0}, {Kind::add, 0, 1}, {Kind::add, 0, 2}},
                            {{Kind::load, 0, 0}, {Kind::add, 0, 3}, {Kind::add, 0, 4}}}};
  std::set<std::string> outcomes;
  for (Random all(7, 1, 50); all.next();) {
    const std::string outcome = ToyRun(program).finish(all);
    Random again(all.seed(), 1, 1);
    ASSERT_TRUE(again.next());
    EXPECT_EQ(ToyRun(program).finish(again), outcome);
    EXPECT_FALSE(again.next());
    outcomes.insert(outcome);
  }
  EXPECT_GT(outcomes.size(), 1U);
}

}  // namespace
}  // namespace perdura::strategies::test
