// Schedules of small histories by strategies: that they find what a late message alone shows, that
// what they find can be repeated, and that no system keeps less than the table of guarantees says.
#include "explore/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using services::GuaranteeLevel;

SoakCase erda_with_correct_persistence() {
  SoakCase one;
  one.system = systems::find_system("erda").value();
  for (const ExploredSetting& setting : explored_settings(one.system.info)) {
    if (setting.correct) one.setting = setting;
  }
  one.model = {.domain = pmem::PersistenceDomain::dmp, .ddio = true};
  one.expected = GuaranteeLevel::durable;
  return one;
}

// A get returns what the writer's flush, which is late, has not made durable yet. The second
// history shows it.
TEST(Strategies, OneLateMessageShowsThatAReaderOfErdaSeesWhatIsLost) {
  const SoakCase one = erda_with_correct_persistence();
  const ScheduleResult result =
      explore_schedules(one, perdura::test::erda_testbed(), {.histories = 2});
  ASSERT_TRUE(result.finding) << result.schedules << " schedules";
  EXPECT_EQ(result.finding->run.kept, GuaranteeLevel::durable_writes) << result.finding->text();
  EXPECT_NE(result.finding->run.loss.find("get of version"), std::string::npos)
      << result.finding->text();
  pmem::Tape tape = pmem::Tape::parse(result.finding->tape);
  EXPECT_EQ(run_once(one, perdura::test::erda_testbed(), tape).loss, result.finding->run.loss);
}

class Strategy : public testing::TestWithParam<StrategyKind> {};

// The same histories, schedules and failures, whatever ran before.
TEST_P(Strategy, RepeatsItself) {
  const SoakCase one = erda_with_correct_persistence();
  const ScheduleOptions options{.strategy = GetParam(), .histories = 1, .schedules = 2};
  const ScheduleResult first = explore_schedules(one, perdura::test::erda_testbed(), options);
  const ScheduleResult again = explore_schedules(one, perdura::test::erda_testbed(), options);
  EXPECT_EQ(first.schedules, 2U);
  EXPECT_GT(first.failures, first.schedules);
  EXPECT_EQ(again.schedules, first.schedules);
  EXPECT_EQ(again.failures, first.failures);
  EXPECT_EQ(again.probability, first.probability);
}

INSTANTIATE_TEST_SUITE_P(, Strategy,
                         testing::Values(StrategyKind::exhaustive, StrategyKind::bounded,
                                         StrategyKind::pct, StrategyKind::random),
                         [](const auto& one) { return std::string(to_string(one.param)); });

// The cells of the table of guarantees. Where nothing is promised, all that can be lost is an answer,
// so there one kind of server stands for all of them.
std::vector<SoakCase> cells_of(const services::ServedSystem& system) {
  std::vector<SoakCase> cells = soak_cases({system}, perdura::test::erda_testbed());
  std::set<std::string> seen;
  std::erase_if(cells, [&](const SoakCase& one) {
    return one.expected == GuaranteeLevel::none && !seen.insert(one.setting.name).second;
  });
  return cells;
}

class SchedulesOfSystem : public testing::TestWithParam<services::ServedSystem> {};

TEST_P(SchedulesOfSystem, KeepWhatTheTableSays) {
  for (const SoakCase& one : cells_of(GetParam())) {
    const ScheduleResult result =
        explore_schedules(one, perdura::test::erda_testbed(),
                          {.strategy = StrategyKind::random, .histories = 1, .schedules = 1});
    ASSERT_FALSE(result.finding) << result.finding->text() << result.finding->tape;
    EXPECT_GT(result.failures, result.schedules) << one.name();
  }
}

// A few of the pairs, or all where these are none: `perdura crash SYSTEM --strategy bounded
// --fails power,power` tries all.
TEST_P(SchedulesOfSystem, KeepWhatTheTableSaysWhereFailuresFollowEachOther) {
  for (const SoakCase& one : cells_of(GetParam())) {
    std::uint64_t failures = 0;
    for (const std::uint64_t stride : {61, 1}) {
      if (failures > 0) break;
      const ScheduleResult result =
          explore_schedules(one, perdura::test::erda_testbed(),
                            {.deviations = 0, .histories = 1, .failures = 2, .stride = stride});
      ASSERT_FALSE(result.finding) << result.finding->text() << result.finding->tape;
      failures = result.failures;
    }
    EXPECT_GT(failures, 0U) << one.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, SchedulesOfSystem, testing::ValuesIn(systems::all_systems()),
                         [](const auto& one) {
                           std::string name(one.param.info.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::explore::test
