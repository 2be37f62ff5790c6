// Explorations of file systems, of one that is simple and right and of copies of it that are wrong.
#include <gtest/gtest.h>

#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/history_loss.h"
#include "explore/sequences.h"
#include "explore/soak.h"
#include "services/fs/crash/service.h"
#include "systems/registry/registry.h"
#include "tests/services/fs/crash/logged_files.h"
#include "tests/support/platforms.h"

namespace perdura::fs::test {
namespace {

using explore::SequenceOptions;
using explore::SequenceResult;
using pmem::PersistenceDomain;
using services::Condition;

const sim::Profile& testbed() { return perdura::test::erda_testbed(); }

SequenceResult explore(const FsSystem& system, SequenceOptions options) {
  const FsService service(std::span(&system, 1));
  options.setup.model = {PersistenceDomain::dmp, false};
  options.threads = 1;
  return explore::explore_sequences({&service, system.info}, testbed(), options);
}

TEST(FsSequences, OfOneOperationLeaveWhatWasBeforeItOrBehindIt) {
  const SequenceResult result = explore(kLogged, {.recoveries = 20});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
  EXPECT_EQ(result.sequences, FsService({}).sequences({}));
  // Most operations change something.
  EXPECT_GT(result.states, result.crash_points);
}

TEST(FsSequences, OfTwoOperationsLeaveWhatWasBeforeTheSecondOrBehindIt) {
  const SequenceResult result =
      explore(kLogged, {.kind = {.length = 2}, .recoveries = 3, .stride = 199});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
}

constexpr services::SequenceKind kPairs{.length = 2, .at_once = true};

TEST(FsSequences, OfTwoClientsAtOnceLeaveWhatSomeOrderOfThemDoes) {
  const SequenceResult result = explore(kLogged, {.kind = kPairs, .recoveries = 3, .stride = 29});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
  EXPECT_GT(result.sequences, 50U);
}

// A loss is that of a pair, and repeated as one.
TEST(FsSequences, OfTwoClientsAtOnceAreRepeated) {
  SequenceOptions options{.kind = kPairs, .stride = 29};
  const SequenceResult result = explore(kLoggedUnflushed, options);
  ASSERT_TRUE(result.loss.has_value());
  EXPECT_NE(result.loss->name.find(" | "), std::string::npos) << result.loss->name;
  const FsService service(std::span(&kLoggedUnflushed, 1));
  options.setup.model = {PersistenceDomain::dmp, false};
  const explore::HistoryLoss loss = loss_of({&service, kLoggedUnflushed.info}, options, result);
  EXPECT_EQ(repeat(loss, testbed()), loss.text);
}

TEST(FsSequences, ThereIsNoneOfThreeClients) {
  EXPECT_EQ(FsService({}).sequences({.length = 3, .at_once = true}), 0U);
}

// Every system of the table, and what explorations of it must find: nothing.
class Explored : public testing::TestWithParam<std::string> {
 protected:
  const FsSystem& system() const { return systems::find_fs_system(GetParam()); }
};

TEST_P(Explored, EachOperationAtEachMoment) {
  const SequenceResult result = explore(system(), {.recoveries = 8});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
  EXPECT_EQ(result.sequences, FsService({}).sequences({}));
  // There is a moment before each operation, one behind it, and some within most of them.
  EXPECT_GT(result.crash_points, 10 * result.sequences);
}

TEST_P(Explored, SomeOfTheSequencesOfTwoOperations) {
  const SequenceResult result =
      explore(system(), {.kind = {.length = 2}, .recoveries = 3, .stride = 97});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
}

TEST_P(Explored, SomePairsOfOperationsOfTwoClientsAtOnce) {
  const SequenceResult result = explore(system(), {.kind = kPairs, .recoveries = 3, .stride = 197});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
}

// The others of a cluster go on.
TEST_P(Explored, SomePairsWhileOneServerStartsAgain) {
  const explore::Failures one{.kind = explore::FailureKind::process, .servers = 1};
  const SequenceResult result =
      explore(system(), {.kind = kPairs, .fails = one, .recoveries = 3, .stride = 397});
  EXPECT_FALSE(result.loss.has_value()) << result.loss->name << "\n" << result.loss->why;
}

TEST_P(Explored, SessionsThatShareFiles) {
  for (const services::ServedSystem& served : systems::all_systems()) {
    if (served.info.name != system().info.name) continue;
    explore::SoakCase one{served,
                          explore::explored_settings(served.info).front(),
                          {PersistenceDomain::dmp, false},
                          system().info.level};
    explore::CaseSoak soak(std::move(one), testbed(), 1);
    for (int run = 0; run < 200; ++run) {
      const auto finding = soak.next();
      ASSERT_FALSE(finding.has_value()) << finding->text();
    }
  }
}

std::vector<std::string> names_of_systems() {
  std::vector<std::string> names;
  for (const FsSystem& system : systems::fs_systems()) names.emplace_back(system.info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Systems, Explored, testing::ValuesIn(names_of_systems()),
                         [](const auto& one) { return one.param; });

class WrongFiles : public testing::TestWithParam<const FsSystem*> {};

TEST_P(WrongFiles, AreFoundOut) {
  SequenceOptions options;
  SequenceResult result = explore(*GetParam(), options);
  if (!result.loss) {
    options = {.kind = {.length = 2}, .stride = 3};
    result = explore(*GetParam(), options);
  }
  ASSERT_TRUE(result.loss.has_value());
  EXPECT_NE(result.loss->why.find("crash point "), std::string::npos) << result.loss->why;
  // What is kept of the loss repeats it.
  const FsService service(std::span(GetParam(), 1));
  options.setup.model = {PersistenceDomain::dmp, false};
  explore::HistoryLoss loss = loss_of({&service, GetParam()->info}, options, result);
  EXPECT_EQ(repeat(loss, testbed()), loss.text);
  take_streams(pmem::Tape::streams_in(pmem::to_string(streams_of(loss.run))), loss.run);
  EXPECT_EQ(repeat(loss, testbed()), loss.text);
}

INSTANTIATE_TEST_SUITE_P(All, WrongFiles,
                         testing::Values(&kLoggedUnflushed, &kLoggedTailFirst, &kLoggedUnfenced,
                                         &kLoggedInTwo, &kLoggedForgetsTimes, &kLoggedKeepsOrphans),
                         [](const auto& one) {
                           std::string name(one.param->info.name);
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(FsHistories, OfARightFileSystemAreDurable) {
  const FsService service(std::span(&kLogged, 1));
  const explore::CrashResult result = explore::explore_crashes(
      {&service, kLogged.info}, testbed(),
      {.setup = {.model = {PersistenceDomain::dmp, false}}, .recoveries = 3, .threads = 1});
  EXPECT_TRUE(result[Condition::durable].held) << result[Condition::durable].first_loss;
}

TEST(FsSoak, FindsNothingInARightFileSystem) {
  const FsService service(std::span(&kLogged, 1));
  explore::SoakCase one{{&service, kLogged.info},
                        explore::explored_settings(kLogged.info).front(),
                        {PersistenceDomain::dmp, false},
                        services::GuaranteeLevel::durable};
  explore::CaseSoak soak(std::move(one), testbed(), 1);
  for (int run = 0; run < 300; ++run) {
    const auto finding = soak.next();
    ASSERT_FALSE(finding.has_value()) << finding->text();
  }
}

TEST(FsSoak, FindsWhatIsWrongOnlyWhereNamesMove) {
  const FsService service(std::span(&kLoggedInTwo, 1));
  explore::SoakCase one{{&service, kLoggedInTwo.info},
                        explore::explored_settings(kLoggedInTwo.info).front(),
                        {PersistenceDomain::dmp, false},
                        services::GuaranteeLevel::durable};
  explore::CaseSoak soak(std::move(one), testbed(), 1);
  bool found = false;
  for (int run = 0; run < 3000 && !found; ++run) found = soak.next([] { return true; }).has_value();
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace perdura::fs::test
