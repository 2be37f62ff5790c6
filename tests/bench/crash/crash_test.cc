// What the systems really guarantee when the server's power fails.
#include "bench/crash/crash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "bench/crash/explored.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::bench::test {
namespace {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using pmem::Transport;

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
    {"mhp", {PersistenceDomain::mhp, true}},
    {"wsp", {PersistenceDomain::wsp, true}},
    {"wsp_iwarp", {PersistenceDomain::wsp, true, Transport::iwarp}},
};

struct Row {
  std::string_view name;
  std::string_view system;
  std::string_view setting;  // a parameter that is 1, or "correct"
  std::array<std::string_view, std::size(kMachines)> guarantees;
};
// A put of Erda ends with a WRITE: only where the device keeps what it has is it durable. Its two
// versions make up for that as long as the older one is durable; as published, nobody sees to that
// but caches that survive. Redo Logging acknowledges what its server has flushed. A READ makes a
// WRITE durable, unless the cache behind it is lost.
constexpr Row kRows[] = {
    {"erda", "erda", "", {"none", "none", "ordered", "durable", "ordered"}},
    {"erda_persisting",
     "erda",
     "persist_before_update",
     {"ordered", "ordered", "ordered", "durable", "ordered"}},
    {"redo_logging", "redo-logging", "", {"durable", "durable", "durable", "durable", "durable"}},
    {"read_after_write",
     "read-after-write",
     "",
     {"durable", "atomic", "durable", "durable", "durable"}},
    // The server's CPU flushes, and nobody reads what it has not flushed.
    {"continuity", "continuity", "", {"durable", "durable", "durable", "durable", "durable"}},
    {"level", "level", "", {"durable", "durable", "durable", "durable", "durable"}},
    {"p_farm_kv", "p-farm-kv", "", {"durable", "durable", "durable", "durable", "durable"}},
    // By the method for the configuration.
    // But a get of Erda returns what is visible, durable or not.
    {"erda_correct",
     "erda",
     "correct",
     {"durable-writes", "durable-writes", "durable", "durable", "durable"}},
    {"redo_logging_correct",
     "redo-logging",
     "correct",
     {"durable", "durable", "durable", "durable", "durable"}},
    {"read_after_write_correct",
     "read-after-write",
     "correct",
     {"durable", "durable", "durable", "durable", "durable"}},
    {"level_correct", "level", "correct", {"durable", "durable", "durable", "durable", "durable"}},
    {"continuity_correct",
     "continuity",
     "correct",
     {"durable", "durable", "durable", "durable", "durable"}},
    {"p_farm_kv_correct",
     "p-farm-kv",
     "correct",
     {"durable", "durable", "durable", "durable", "durable"}},
};

CrashOptions options_of(const Row& row, const PersistenceModel& model) {
  CrashOptions options{.setup = {.model = model}, .random_images = 1};
  options.setup.correct = row.setting == "correct";
  if (!row.setting.empty() && !options.setup.correct)
    options.setup.parameters[std::string(row.setting)] = 1;
  return options;
}

class Crashes : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(Crashes, LeaveWhatTheSystemGuarantees) {
  const auto [row_index, machine_index] = GetParam();
  const Row& row = kRows[row_index];
  const CrashOptions options = options_of(row, kMachines[machine_index].model);
  const CrashResult result = explore_crashes(system_of(row.system), testbed(), options);
  auto events = result.events;
  const std::string_view strongest = to_string(result.strongest());
  std::cout << strongest << ": " << result.moments << " moments, " << result.runs << " failures, "
            << result.images << " images, " << events["cleanings"] << " cleanings, "
            << events["early reads"] << " early reads\n";
  EXPECT_EQ(strongest, row.guarantees[machine_index])
      << result.durable.first_loss << result.ordered.first_loss << result.atomic.first_loss;
  // What results and legends say is what is found.
  const services::ServedSystem system = system_of(row.system);
  EXPECT_EQ(explored_level(system.info, options.setup.parameters, options.setup.correct,
                           options.setup.model),
            result.strongest())
      << "perdura guarantees makes bench/crash/explored.csv";
  for (const Guarantee* guarantee :
       {&result.durable, &result.acknowledged, &result.observed, &result.ordered, &result.atomic}) {
    EXPECT_EQ(guarantee->held, guarantee->first_loss.empty());
  }
  EXPECT_GT(result.moments, 400U);
  EXPECT_EQ(result.runs, 3 * result.moments);
  // Fewer than moments where a store is durable when it is visible: not each moment changes memory.
  EXPECT_GT(result.images, 400U);
  EXPECT_EQ(events["cleanings"], row.system == "erda" ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Crashes,
                         testing::Combine(testing::Range<std::size_t>(0, std::size(kRows)),
                                          testing::Range<std::size_t>(0, std::size(kMachines))),
                         [](const auto& test) {
                           return std::string(kRows[std::get<0>(test.param)].name) + "_on_" +
                                  std::string(kMachines[std::get<1>(test.param)].name);
                         });

// Each column of the table is one, on every transport.
TEST(Explored, KnowsAllSystemsOnAllServers) {
  EXPECT_EQ(explored_models().size(), 12U);
  for (const services::ServedSystem& system : systems::all_systems()) {
    for (const ExploredSetting& setting : explored_settings(system.info)) {
      for (const PersistenceModel& model : explored_models()) {
        EXPECT_TRUE(explored_level(system.info, setting.parameters, setting.correct, model))
            << explored_name(system.info, setting) << " on " << explored_name(model);
      }
    }
  }
}

CrashResult a_tenth(std::uint64_t seed) {
  return explore_crashes(
      system_of("read-after-write"), testbed(),
      {.setup = {.model = kMachines[1].model, .seed = seed}, .random_images = 1, .stride = 10});
}

TEST(CrashExploration, TheSameSeedGivesTheSameResult) {
  const CrashResult first = a_tenth(1);
  const CrashResult again = a_tenth(1);
  const CrashResult other = a_tenth(2);
  EXPECT_EQ(first.images, again.images);
  EXPECT_EQ(first.durable.first_loss, again.durable.first_loss);
  EXPECT_NE(first.durable.first_loss, other.durable.first_loss);
  EXPECT_GE(first.runs, 3 * ((first.moments + 9) / 10));
  EXPECT_LE(first.runs, 3 * ((first.moments + 9) / 10 + 1)) << "two histories";
}

// A loss is found again by its moment alone, and parts are as good as the whole.
TEST(CrashExploration, GoesOnFromAnyMoment) {
  CrashOptions options{.setup = {.model = kMachines[1].model}, .random_images = 1};
  options.schedule = "equal-writers";
  const services::ServedSystem system = system_of("read-after-write");
  const CrashResult whole = explore_crashes(system, testbed(), options);
  options.last = whole.moments / 2;
  const CrashResult begin = explore_crashes(system, testbed(), options);
  options.first = whole.moments / 2 + 1;
  options.last = whole.moments;
  const CrashResult end = explore_crashes(system, testbed(), options);
  EXPECT_EQ(begin.runs + end.runs, whole.runs);
  EXPECT_TRUE(whole.durable.first_loss == begin.durable.first_loss ||
              whole.durable.first_loss == end.durable.first_loss);
  std::uint64_t moment = 0;
  ASSERT_EQ(std::sscanf(whole.durable.first_loss.c_str(), "moment %lu", &moment), 1);
  options.first = options.last = moment;
  const CrashResult replayed = explore_crashes(system, testbed(), options);
  EXPECT_EQ(replayed.runs, 3U);
  EXPECT_EQ(replayed.durable.first_loss, whole.durable.first_loss);
}

TEST(CrashExploration, TheTraceTellsWhatWasDoneAndWhatWasLost) {
  const std::string trace = a_tenth(1).durable.first_loss;
  for (const std::string_view part :
       {"moment ", "image", "put of version", "the server fails at", "=> key"}) {
    EXPECT_NE(trace.find(part), std::string::npos) << part << " is missing in:\n" << trace;
  }
}

// Which of the two histories shows it: the second writer of the first is as fast as the other one.
TEST(CrashExploration, ASlowWriterShowsWhatAReaderSeesTooEarly) {
  CrashOptions options{.setup = {.model = kMachines[1].model, .correct = true}, .random_images = 1};
  const services::ServedSystem erda = system_of("erda");
  options.schedule = "slow-writer";
  const CrashResult slow = explore_crashes(erda, testbed(), options);
  EXPECT_GT(slow.events.at("early reads"), 0U);
  EXPECT_TRUE(slow.acknowledged.held) << slow.acknowledged.first_loss;
  EXPECT_FALSE(slow.observed.held);
  EXPECT_NE(slow.durable.first_loss.find(", slow-writer\n"), std::string::npos)
      << slow.durable.first_loss;
}

TEST(CrashExploration, TellsHowFarItIsAndEndsWhenAsked) {
  CrashOptions options{.setup = {.model = kMachines[1].model}, .random_images = 1, .stride = 100};
  const services::ServedSystem system = system_of("read-after-write");
  std::vector<double> shares;
  options.progress = [&](double share) { shares.push_back(share); };
  const CrashResult whole = explore_crashes(system, testbed(), options);
  EXPECT_EQ(shares.size(), whole.runs);
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
}  // namespace perdura::bench::test
