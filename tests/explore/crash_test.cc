// What the systems really guarantee when the server's power fails.
#include "explore/crash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>

#include "explore/explored.h"
#include "platform/base/error.h"
#include "services/kv/service.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using pmem::Transport;
using services::Condition;

const sim::Profile& testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

services::ServedSystem system_of(std::string_view name) {
  return systems::find_system(name).value();
}

struct Machine {
  std::string_view name;
  PersistenceModel model;
};
constexpr Machine kMachines[] = {
    {"dmp", {PersistenceDomain::dmp, false}},
    {"dmp_ddio", {PersistenceDomain::dmp, true}},
    {"wsp_iwarp", {PersistenceDomain::wsp, true, Transport::iwarp}},
};

// Every system of every service, in every setting that changes what it guarantees.
struct Row {
  services::ServedSystem system;
  ExploredSetting setting;
};
std::vector<Row> rows() {
  std::vector<Row> all;
  for (const services::ServedSystem& system : systems::all_systems()) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      all.push_back({system, setting});
    }
  }
  return all;
}

std::string test_name(const Row& row) {
  std::string name = explored_name(row.system.info, row.setting);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

class Crashes : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

// A device can show what a CPU has stored long before that is durable. So nobody may be told of it
// by a word that is stored before it is: where fences take longer than the other operations, a
// failure finds it so. On usual fences Reference.guarantees tries every row and kind of server.
TEST_P(Crashes, KeepTheirLevelWhereFencesTakeLong) {
  const auto [row_index, machine_index] = GetParam();
  const auto [system, setting] = rows()[row_index];
  const PersistenceModel& model = kMachines[machine_index].model;
  CrashOptions options{.setup = {.model = model}, .recoveries = 3};
  options.setup.parameters = setting.parameters;
  options.setup.correct = setting.correct;
  const auto cell = explored_cell(system.info, setting.parameters, setting.correct, model);
  ASSERT_TRUE(cell) << "scripts/reference makes explore/explored.csv";
  EXPECT_EQ(cell->refused, refusal(system.info, options.setup, testbed().nic));
  if (!cell->level) {
    EXPECT_THROW(explore_crashes(system, testbed(), options), UsageError);
    return;
  }
  if (*cell->level == services::GuaranteeLevel::none) GTEST_SKIP() << "it has no level to keep";
  sim::Profile slow = testbed();
  slow.cpu.fence = Microseconds(10);
  const CrashResult result = explore_crashes(system, slow, options);
  EXPECT_GE(result.strongest(), *cell->level)
      << result[Condition::durable].first_loss << result[Condition::ordered].first_loss
      << result[Condition::atomic].first_loss;
  for (const Condition condition : services::kConditions) {
    EXPECT_EQ(result[condition].held, result[condition].first_loss.empty());
  }
  EXPECT_GT(result.crash_points, 40U);
  EXPECT_EQ(result.coverage.exhausted + result.coverage.sampled, result.crash_points);
  EXPECT_GE(result.coverage.recoveries, result.crash_points);
}

INSTANTIATE_TEST_SUITE_P(All, Crashes,
                         testing::Combine(testing::Range<std::size_t>(0, rows().size()),
                                          testing::Range<std::size_t>(0, std::size(kMachines))),
                         [](const auto& test) {
                           return test_name(rows()[std::get<0>(test.param)]) + "_on_" +
                                  std::string(kMachines[std::get<1>(test.param)].name);
                         });

// The table is about the first small store of each system. In the others it cleans, moves and goes
// around in other ways, and must keep as much.
struct SmallStoreOf {
  services::ServedSystem system;
  std::size_t number = 0;
  std::span<const services::Setting> parameters;
};
std::vector<SmallStoreOf> other_small_stores() {
  std::vector<SmallStoreOf> all;
  for (const kv::KvSystem& system : systems::kv_systems()) {
    for (std::size_t number = 1; number < system.small_stores.size(); ++number) {
      all.push_back({system_of(system.name), number, system.small_stores[number].parameters});
    }
  }
  return all;
}

class CrashesInSmallStores : public testing::TestWithParam<SmallStoreOf> {};

TEST_P(CrashesInSmallStores, LeaveAtLeastWhatTheTableSays) {
  const services::SystemInfo& info = GetParam().system.info;
  const PersistenceModel& model = kMachines[0].model;
  // So that clients write while a server cleans or moves something.
  sim::Profile slow = testbed();
  slow.cpu.fence = Microseconds(2);
  for (const ExploredSetting& setting : explored_settings(info)) {
    const auto cell = explored_cell(info, setting.parameters, setting.correct, model);
    ASSERT_TRUE(cell) << "scripts/reference makes explore/explored.csv";
    if (!cell->level || *cell->level == services::GuaranteeLevel::none) continue;
    CrashOptions options{.setup = {.model = model}, .recoveries = 3};
    options.schedule = "equal-writers";
    options.setup.parameters = setting.parameters;
    options.setup.correct = setting.correct;
    for (const services::Setting& parameter : GetParam().parameters) {
      options.setup.parameters.emplace(parameter.name, parameter.value.value());
    }
    const CrashResult result = explore_crashes(GetParam().system, slow, options);
    EXPECT_GE(result.strongest(), *cell->level)
        << explored_name(info, setting) << ":\n"
        << result[Condition::durable].first_loss << result[Condition::ordered].first_loss
        << result[Condition::atomic].first_loss;
    EXPECT_GT(result.crash_points, 40U);
    for (const auto& [event, count] : result.events) std::cout << count << " " << event << ", ";
    std::cout << result.coverage.recoveries << " recoveries\n";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CrashesInSmallStores, testing::ValuesIn(other_small_stores()), [](const auto& test) {
      return test_name({test.param.system, {}}) + "_" + std::to_string(test.param.number);
    });

std::string_view said_of(std::string_view name, std::string_view setting,
                         const PersistenceModel& model) {
  const services::ServedSystem system = system_of(name);
  GivenParameters parameters;
  const bool correct = setting == "correct";
  if (!setting.empty() && !correct) parameters[std::string(setting)] = 1;
  const auto level = explored_level(system.info, parameters, correct, std::span(&model, 1));
  return level ? to_string(*level) : "not said";
}

// A put of Erda ends with a WRITE: only where the device keeps what it has is it durable. Its two
// versions make up for that as long as the older one is durable; as published, nobody sees to that
// but caches that survive. A READ makes a WRITE durable, unless the cache behind it is lost.
TEST(KnownGuarantees, FollowFromHowASystemPersists) {
  const PersistenceModel dmp{PersistenceDomain::dmp, false};
  const PersistenceModel dmp_ddio{PersistenceDomain::dmp, true};
  const PersistenceModel mhp{PersistenceDomain::mhp, true};
  const PersistenceModel wsp{PersistenceDomain::wsp, true};
  EXPECT_EQ(said_of("erda", "", dmp), "none");
  EXPECT_EQ(said_of("erda", "", mhp), "ordered");
  EXPECT_EQ(said_of("erda", "", wsp), "durable");
  EXPECT_EQ(said_of("erda", "persist_before_update", dmp_ddio), "ordered");
  EXPECT_EQ(said_of("erda", "correct", dmp), "durable-writes") << "a get returns what is visible";
  EXPECT_EQ(said_of("erda", "correct", mhp), "durable");
  EXPECT_EQ(said_of("read-after-write", "", dmp), "durable");
  EXPECT_EQ(said_of("read-after-write", "", dmp_ddio), "atomic");
  EXPECT_EQ(said_of("read-after-write", "correct", dmp_ddio), "durable");
  EXPECT_EQ(said_of("redo-logging", "", dmp_ddio), "durable") << "its server flushes";
}

TEST(Explored, LeavesOutServersOnWhichASystemCannotRun) {
  const services::SystemInfo erda = system_of("erda").info;
  const PersistenceModel wsp{PersistenceDomain::wsp, true};
  const PersistenceModel over_iwarp{PersistenceDomain::wsp, true, Transport::iwarp};
  const PersistenceModel mhp{PersistenceDomain::mhp, true};
  const auto weakest = [&](std::vector<PersistenceModel> servers) {
    return explored_level(erda, {}, false, servers);
  };
  using services::GuaranteeLevel;
  EXPECT_EQ(weakest({wsp, over_iwarp}), GuaranteeLevel::durable);
  EXPECT_EQ(weakest({wsp, over_iwarp, mhp}), GuaranteeLevel::ordered);
  EXPECT_EQ(weakest({over_iwarp}), std::nullopt);
  EXPECT_EQ(refusal(erda, {.model = over_iwarp}, testbed().nic),
            "needs WRITE_WITH_IMM, which iWARP lacks");
  EXPECT_EQ(refusal(erda, {.model = wsp}, testbed().nic), "");
}

TEST(Explored, ASystemMayNeedWhatDevicesLackOrHaveNoMethodToChoose) {
  services::SystemInfo system;
  system.name = "own";
  const services::Setting with_atomics{"locks", 1, {.atomics = true}};
  system.changes_guarantee = std::span(&with_atomics, 1);
  const PersistenceModel over_iwarp{PersistenceDomain::mhp, true, Transport::iwarp};
  EXPECT_EQ(refusal(system, {.model = over_iwarp}, testbed().nic), "");
  EXPECT_EQ(refusal(system, {.model = over_iwarp, .parameters = {{"locks", 1}}}, testbed().nic),
            "needs atomics, which iWARP lacks");
  EXPECT_EQ(refusal(system, {.model = {}, .parameters = {{"locks", 1}}}, testbed().nic), "");
  system.needs.atomic_write = true;
  EXPECT_EQ(refusal(system, {}, sim::NicProfile{}),
            "needs ATOMIC WRITE, which the devices of this profile lack");
  system.needs = {};
  EXPECT_EQ(refusal(system, {.model = {}, .correct = true}, testbed().nic),
            "has no method to choose");
  for (const bool chooses : {false, true}) {
    system.chooses_method = chooses;
    EXPECT_EQ(explored_settings(system).size(), chooses ? 3U : 2U);
    EXPECT_EQ(explored_settings(system).back().correct, chooses);
  }
}

// The responder's CPU may not take part: then no method is right where a cache is lost, and that
// configuration alone is refused.
TEST(CrashExploration, APutWithoutTheServersCpuHasNoMethodWhereOnlyTheCpuCanFlush) {
  kv::KvSystem one_sided = systems::find_kv_system("read-after-write");
  one_sided.put->responder_cpu = false;
  const services::KvService service(std::span(&one_sided, 1));
  const auto explored = [&](const PersistenceModel& model) {
    return explore_crashes({&service, services::info_of(one_sided)}, testbed(),
                           {.setup = {.model = model, .correct = true}, .recoveries = 3});
  };
  EXPECT_EQ(explored({PersistenceDomain::dmp, false}).strongest(),
            services::GuaranteeLevel::durable);
  EXPECT_THROW(explored({PersistenceDomain::dmp, true}), UsageError);
}

TEST(CrashExploration, AnUnknownScheduleIsRefusedWithThoseOfTheService) {
  CrashOptions options;
  options.schedule = "appends";
  try {
    explore_crashes(system_of("erda"), testbed(), options);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "service kv has no schedule 'appends'; known are: equal-writers, slow-writer");
  }
}

// What never happens is named, if everything was to be tried.
TEST(CrashExploration, SaysWhatItHasNotMet) {
  CrashOptions options{.setup = {.model = {PersistenceDomain::mhp, true}}, .recoveries = 2};
  options.setup.parameters = {{"top_buckets", 64}};
  const services::ServedSystem level = system_of("level");
  const CrashResult large = explore_crashes(level, testbed(), options);
  EXPECT_NE(std::find(large.unexplored.begin(), large.unexplored.end(), "resizes"),
            large.unexplored.end());
  options.stride = 50;
  EXPECT_EQ(explore_crashes(level, testbed(), options).unexplored, std::vector<std::string>{});
}

// Each column of the table is one, on every transport.
TEST(Explored, KnowsAllSystemsOnAllServers) {
  EXPECT_EQ(explored_models().size(), 12U);
  for (const services::ServedSystem& system : systems::all_systems()) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      for (const PersistenceModel& model : explored_models()) {
        EXPECT_TRUE(explored_cell(system.info, setting.parameters, setting.correct, model))
            << explored_name(system.info, setting) << " on " << explored_name(model);
      }
    }
  }
}

CrashResult a_tenth(std::uint64_t seed) {
  return explore_crashes(
      system_of("read-after-write"), testbed(),
      {.setup = {.model = kMachines[1].model, .seed = seed}, .recoveries = 3, .stride = 10});
}

TEST(CrashExploration, TheSameSeedGivesTheSameResult) {
  const CrashResult first = a_tenth(1);
  const CrashResult again = a_tenth(1);
  const CrashResult other = a_tenth(2);
  EXPECT_EQ(first.coverage.covered, again.coverage.covered);
  EXPECT_EQ(first[Condition::durable].first_loss, again[Condition::durable].first_loss);
  EXPECT_NE(first[Condition::durable].first_loss, other[Condition::durable].first_loss);
  const std::uint64_t tried = first.coverage.exhausted + first.coverage.sampled;
  EXPECT_GE(tried, (first.crash_points + 9) / 10);
  EXPECT_LE(tried, (first.crash_points + 9) / 10 + 1) << "two histories";
}

// A loss is found again by its crash point alone, and parts are as good as the whole.
TEST(CrashExploration, GoesOnFromAnyMoment) {
  CrashOptions options{.setup = {.model = kMachines[1].model}, .recoveries = 3};
  options.schedule = "equal-writers";
  const services::ServedSystem system = system_of("read-after-write");
  const CrashResult whole = explore_crashes(system, testbed(), options);
  options.last = whole.crash_points / 2;
  const CrashResult begin = explore_crashes(system, testbed(), options);
  options.first = whole.crash_points / 2 + 1;
  options.last = whole.crash_points;
  const CrashResult end = explore_crashes(system, testbed(), options);
  const auto tried = [](const CrashResult& result) {
    return result.coverage.exhausted + result.coverage.sampled;
  };
  EXPECT_EQ(tried(begin) + tried(end), tried(whole));
  EXPECT_TRUE(whole[Condition::durable].first_loss == begin[Condition::durable].first_loss ||
              whole[Condition::durable].first_loss == end[Condition::durable].first_loss);
  std::uint64_t crash_point = 0;
  ASSERT_EQ(
      std::sscanf(whole[Condition::durable].first_loss.c_str(), "crash point %lu", &crash_point),
      1);
  options.first = options.last = crash_point;
  const CrashResult replayed = explore_crashes(system, testbed(), options);
  EXPECT_EQ(tried(replayed), 1U);
  EXPECT_EQ(replayed[Condition::durable].first_loss, whole[Condition::durable].first_loss);
}

TEST(CrashExploration, TheTraceTellsWhatWasDoneAndWhatWasLost) {
  const std::string trace = a_tenth(1)[Condition::durable].first_loss;
  for (const std::string_view part :
       {"crash point ", "recovery", "put of version", "the server fails at", "=> key"}) {
    EXPECT_NE(trace.find(part), std::string::npos) << part << " is missing in:\n" << trace;
  }
}

// Which of the two histories shows it: the second writer of the first is as fast as the other one.
TEST(CrashExploration, ASlowWriterShowsWhatAReaderSeesTooEarly) {
  CrashOptions options{.setup = {.model = kMachines[1].model, .correct = true}, .recoveries = 3};
  const services::ServedSystem erda = system_of("erda");
  options.schedule = "slow-writer";
  const CrashResult slow = explore_crashes(erda, testbed(), options);
  EXPECT_GT(slow.events.at("early reads"), 0U);
  EXPECT_TRUE(slow[Condition::acknowledged].held) << slow[Condition::acknowledged].first_loss;
  EXPECT_FALSE(slow[Condition::observed].held);
  EXPECT_NE(slow[Condition::durable].first_loss.find(", slow-writer\n"), std::string::npos)
      << slow[Condition::durable].first_loss;
}

TEST(CrashExploration, TellsHowFarItIsAndEndsWhenAsked) {
  CrashOptions options{
      .setup = {.model = kMachines[1].model}, .recoveries = 3, .stride = 10, .threads = 1};
  const services::ServedSystem system = system_of("read-after-write");
  std::vector<double> shares;
  options.progress = [&](double share) { shares.push_back(share); };
  const CrashResult whole = explore_crashes(system, testbed(), options);
  EXPECT_GE(shares.size(), whole.coverage.exhausted + whole.coverage.sampled);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_LT(shares.back(), 1);
  struct Enough {};
  options.progress = [](double) { throw Enough{}; };
  EXPECT_THROW(explore_crashes(system, testbed(), options), Enough);
}

TEST(CrashExploration, ParametersThatTheSystemDoesNotHaveAreRefused) {
  EXPECT_THROW(
      explore_crashes(system_of("erda"), testbed(),
                      {.setup = {.model = kMachines[0].model, .parameters = {{"log_slots", 16}}}}),
      UsageError);
}

}  // namespace
}  // namespace perdura::explore::test
