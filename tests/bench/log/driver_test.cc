// The driver of RemoteLog: every experiment of ours can be planned, points measure what they say,
// and what cannot be is refused before anything runs.
#include "bench/log/log_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/error.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;
using workload::OperationKind;

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"remote-log\"\n"
    "[workload]\n"
    "workload = \"create-only\"\n"
    "records = 0\n"
    "operations = 500\n"
    "warmup = 20\n"
    "value_size = 64\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "system = [\"write-message\"]\n"
    "[systems.write-message]\n"
    "slots = 16\n";

std::vector<Point> plan(const std::vector<std::string>& changes = {}) {
  std::vector<harness::Override> overrides;
  for (const std::string& change : changes) overrides.push_back(harness::parse_override(change));
  const harness::Experiment experiment =
      read_experiment(harness::Document::parse(std::string(kText), "x.toml", overrides));
  return plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), LogDriver(), 1);
}

std::string refusal(const std::vector<std::string>& changes) {
  try {
    plan(changes);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LogDriver, PlansTheExperiments) {
  for (const char* name : {"single", "ordered", "shm"}) {
    const auto experiment = harness::load_experiment(
        fmt::format("{}/experiments/remote-log-{}.toml", PERDURA_SOURCE_DIR, name));
    EXPECT_GE(
        plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), LogDriver(), 1).size(),
        10U);
  }
}

TEST(LogDriver, MeasuresEachAppend) {
  for (const std::string& name : perdura::test::platform_names()) {
    for (const char* method : {"write-message", "write", "send-copy-flush", "ordered-write"}) {
      const Point point = plan({fmt::format("matrix.system=[\"{}\"]", method)}).front();
      const auto platform = perdura::test::make_platform(name, 2);
      const Measurement result = LogDriver().run(*platform, point);
      EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
      EXPECT_EQ(result.usage_error, "");
      EXPECT_EQ(result.operations(), 500U);
      const auto& appends = result.kinds.at(OperationKind::insert);
      EXPECT_EQ(appends.latency.count(), 500U);
      EXPECT_EQ(appends.errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
      EXPECT_GT(result.writes.total().bytes_issued, 500U * 64);
    }
  }
}

// Messages of the responder's CPU make an append longer, and its flush even more.
TEST(LogDriver, TellsMethodsApart) {
  const auto mean = [](const char* method) {
    const Point point = plan({fmt::format("matrix.system=[\"{}\"]", method)}).front();
    const auto platform = perdura::test::make_platform("sim", 2);
    return LogDriver().run(*platform, point).kinds.at(OperationKind::insert).latency.mean();
  };
  EXPECT_LT(mean("write"), mean("send-copy"));
  EXPECT_LT(mean("send-copy"), mean("send-copy-flush"));
  EXPECT_LT(mean("write-message"), mean("ordered-write-message"));
}

TEST(LogDriver, SaysWhatTheDeviceLacks) {
  const Point point = plan({"matrix.system=[\"ordered-write-atomic\"]"}).front();
  const auto platform = perdura::test::make_platform("sim", 2);
  const Measurement result = LogDriver().run(*platform, point);
  EXPECT_NE(result.usage_error.find("method 'ordered-write-atomic' needs"), std::string::npos);
}

TEST(LogDriver, RefusesWhatIsNoLog) {
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_NE(
      refusal({"workload.workload=\"workloada\"", "workload.records=5"}).find("takes appends only"),
      std::string::npos);
  EXPECT_NE(refusal({"workload.records=5"}).find("takes appends only"), std::string::npos);
  for (const char* several : {"clients", "queue_depth", "server_threads", "client_nodes"}) {
    EXPECT_NE(refusal({fmt::format("workload.{}=2", several)}).find("a log has one client"),
              std::string::npos)
        << several;
  }
  EXPECT_NE(refusal({"workload.check_history=true"}).find("no history"), std::string::npos);
  EXPECT_NE(refusal({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(refusal({"matrix.system=[\"erda\"]"}).find("unknown system 'erda'"), std::string::npos);
  EXPECT_NE(refusal({"systems.write-message.slot=3"}).find("no parameter 'slot'"),
            std::string::npos);
  EXPECT_NE(refusal({"systems.write-message.slots=0"}).find("must be 1 to"), std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
