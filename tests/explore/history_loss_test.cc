// Losses of fixed histories are data: what a file holds of one repeats it.
#include "explore/history_loss.h"

#include <gtest/gtest.h>

#include <string>

#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using pmem::Tape;
using services::GuaranteeLevel;

constexpr PersistenceModel kVolatileCache{PersistenceDomain::dmp, true};
constexpr PersistenceModel kPersistentCache{PersistenceDomain::wsp, true};

// As many crash points of Erda as are needed.
CrashOptions equal_writers() {
  CrashOptions options;
  options.setup.model = kVolatileCache;
  options.schedule = "equal-writers";
  options.last = 80;
  return options;
}

const sim::Profile& repeated_testbed() { return perdura::test::erda_testbed(); }

HistoryLoss found_in(std::string_view system, const CrashOptions& options) {
  const services::ServedSystem served = systems::find_system(system).value();
  const CrashResult result = explore_crashes(served, repeated_testbed(), options);
  EXPECT_FALSE(result[services::Condition::durable].held) << system;
  return loss_of(served, options, result, worst_lost(result));
}

// What a file holds of a run.
HistoryLoss read_back(const HistoryLoss& loss) {
  HistoryLoss read = loss;
  read.run.failing = {};
  read.run.image.after = {};
  read.run.image.image.clear();
  take_streams(Tape::streams_in(pmem::to_string(streams_of(loss.run))), read.run);
  return read;
}

void expect_repeats(const HistoryLoss& loss) {
  const HistoryLoss read = read_back(loss);
  EXPECT_EQ(read.run.failing, loss.run.failing) << loss.text;
  EXPECT_EQ(repeat(read, repeated_testbed()), loss.text);
  EXPECT_TRUE(explain(read, repeated_testbed()).has_value()) << loss.text;
}

TEST(HistoryLoss, OfPowerOfAllServersIsRepeated) {
  const HistoryLoss none = found_in("erda", equal_writers());
  EXPECT_EQ(none.where.expected, GuaranteeLevel::atomic);
  EXPECT_EQ(none.kept, GuaranteeLevel::none);
  EXPECT_NE(none.run.image.name, "recovery 1") << "the least image, whatever is read of the file";
  expect_repeats(none);
  const HistoryLoss reads = found_in(
      "erda", {.setup = {.model = kVolatileCache, .correct = true}, .schedule = "slow-writer"});
  EXPECT_EQ(reads.where.expected, GuaranteeLevel::durable);
  EXPECT_EQ(reads.where.name(), "erda, persistence = correct on dmp ddio");
  expect_repeats(reads);
}

TEST(HistoryLoss, OfAParameterThatTheTableDoesNotHave) {
  CrashOptions options = equal_writers();
  options.setup.parameters = {{"neighborhood", 4}};
  options.setup.seed = 3;
  const HistoryLoss loss = found_in("erda", options);
  EXPECT_EQ(loss.where.name(), "erda, neighborhood = 4 on dmp ddio");
  expect_repeats(loss);
}

// An asynchronous mirror loses what it has not sent yet.
TEST(HistoryLoss, OfSomeServersIsRepeated) {
  CrashOptions options{.setup = {.model = kVolatileCache}, .recoveries = 3, .stride = 40};
  options.fails.servers = 1;
  const HistoryLoss power = found_in("m-sync", options);
  EXPECT_EQ(power.run.failing.servers.size(), 1U);
  expect_repeats(power);
  options.setup.correct = true;
  options.stride = 20;
  options.fails.kind = FailureKind::process;
  options.fails.servers = 0;
  expect_repeats(found_in("m-async", options));
}

TEST(HistoryLoss, IsGoneWhereItsCauseIs) {
  HistoryLoss loss = found_in("erda", equal_writers());
  loss.where.model = kPersistentCache;
  EXPECT_EQ(repeat(loss, repeated_testbed()), "");
  EXPECT_FALSE(explain(loss, repeated_testbed()).has_value());
  // The history has ended before the failure.
  loss.run.image.after += std::chrono::seconds(1);
  EXPECT_EQ(repeat(loss, repeated_testbed()), "");
}

// The level that was expected is kept now, but the run is still not durable.
TEST(HistoryLoss, ThatTellsLessIsStillALoss) {
  HistoryLoss loss = found_in(
      "erda", {.setup = {.model = kVolatileCache, .correct = true}, .schedule = "slow-writer"});
  loss.where.expected = GuaranteeLevel::atomic;
  EXPECT_EQ(repeat(loss, repeated_testbed()), loss.text);
}

TEST(HistoryLoss, SaysWhichChoicesNameNoRun) {
  const services::ServedSystem erda = systems::find_system("erda").value();
  const services::CrashSetup setup{.model = kVolatileCache};
  const auto problem_with = [&](const std::string& choices, const std::string& schedule) {
    LosingRun run{.schedule = schedule};
    try {
      take_streams(Tape::streams_in(choices), run);
      history_of(erda, setup, run);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string slow = "slow-writer";
  EXPECT_EQ(problem_with("crash-point 17; image 1 1", slow), "");
  EXPECT_EQ(problem_with("fails 2 1", slow), "");    // client 1
  EXPECT_EQ(problem_with("fails 3 0 1", slow), "");  // the connection of node 1 with the server
  EXPECT_EQ(problem_with("fails 4", slow), "stream 'fails' of choices: 4 is more than 3");
  EXPECT_NE(problem_with("fails 2 9", slow).find("no such client can fail"), std::string::npos);
  EXPECT_NE(problem_with("fails 3 0 1 2", slow).find("no such connection"), std::string::npos);
  EXPECT_NE(problem_with("fails 0 2 0 1", slow).find("it has 1"), std::string::npos);
  EXPECT_NE(problem_with("fails 0 1 7", slow).find("no such power can fail"), std::string::npos);
  EXPECT_NE(problem_with("fails 0 5000", slow), "");
  EXPECT_NE(problem_with("crash-point 18446744073709551615", slow), "");
  EXPECT_NE(problem_with("client-0 1", slow).find("no stream 'client-0'"), std::string::npos);
  EXPECT_NE(problem_with("", "quick-writer").find("known are"), std::string::npos);
  EXPECT_NE(problem_with("", "").find("no sequence"), std::string::npos);
}

}  // namespace
}  // namespace perdura::explore::test
