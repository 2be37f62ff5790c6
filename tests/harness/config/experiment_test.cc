#include "harness/config/experiment.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/config/document.h"
#include "tests/harness/declarations.h"

namespace perdura::harness {
namespace {

constexpr std::string_view kExperiment = R"(
name = "erda-latency"
description = "latency"
profile = "erda-connectx3"
seed = 7
accounting = "compared"

[workload]
records = 1000
operations = 20000
key_size = 16

[roles]
server_completion = "polling"

[matrix]
workload = ["workloadc", "workloada"]
value_size = [16, 64]
system = ["erda", "redo-logging"]

[systems.erda]
segment_bytes = 8388608

[shm]
write_latency_ns = 150
pm_directory = "/mnt/pm"

[[figure]]
id = "a"
title = "A"
plot = "throughput-over-clients"
x = "clients"
y = "throughput_ops_s"
)";

Experiment read(std::string_view text) {
  return read_experiment(Document::parse(std::string(text), "x.toml"), test::declarations());
}

TEST(Experiment, IsWhatTheFileSays) {
  const Experiment experiment = read(kExperiment);
  EXPECT_EQ(experiment.name, "erda-latency");
  EXPECT_EQ(experiment.driver.text, "kv");
  EXPECT_EQ(experiment.platform.text, "sim");
  EXPECT_EQ(experiment.profile.text, "erda-connectx3");
  EXPECT_EQ(experiment.profile.where, "x.toml:4");
  EXPECT_EQ(experiment.seed, 7U);
  EXPECT_EQ(experiment.repetitions, 1U);
  EXPECT_EQ(experiment.accounting, pmem::WriteMeter::Level::compared);
  EXPECT_EQ(experiment.systems.at("erda").parameters.at("segment_bytes"), 8388608U);
  EXPECT_EQ(experiment.systems.at("erda").where, "x.toml:21");
  ASSERT_EQ(experiment.specs.figures.size(), 1U);
  EXPECT_EQ(experiment.specs.figures[0].title, "A");
  EXPECT_EQ(experiment.shm.write_latency_ns, 150U);
  EXPECT_EQ(experiment.shm.network_latency_ns, 0U);
  EXPECT_EQ(experiment.shm.pm_directory.text, "/mnt/pm");
  EXPECT_EQ(experiment.timeline_interval, Nanoseconds(0));
  EXPECT_EQ(experiment.text, kExperiment);
}

TEST(Experiment, MayAskForACourseOverTime) {
  EXPECT_EQ(read(std::string(kExperiment) + "[timeline]\ninterval_us = 500\n").timeline_interval,
            Microseconds(500));
}

TEST(Matrix, IsExpandedInTheOrderOfTheFileTheLastFastest) {
  std::vector<std::string> order;
  for (const PointSettings& point : expand(read(kExperiment))) {
    order.push_back(point.text("workload") + " " + std::to_string(point.number("value_size")) +
                    " " + point.system.text);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"workloadc 16 erda", "workloadc 16 redo-logging",
                                             "workloadc 64 erda", "workloadc 64 redo-logging",
                                             "workloada 16 erda", "workloada 16 redo-logging",
                                             "workloada 64 erda", "workloada 64 redo-logging"}));
}

TEST(Matrix, LeavesTheScalarsAlone) {
  for (const PointSettings& point : expand(read(kExperiment))) {
    EXPECT_EQ(point.number("records"), 1000U);
    EXPECT_EQ(point.number("operations"), 20000U);
    EXPECT_EQ(point.number("key_size"), 16U);
    EXPECT_EQ(point.number("warmup"), 0U);
    EXPECT_EQ(point.number("clients"), 1U);
    EXPECT_FALSE(point.given("client_nodes"));
    EXPECT_EQ(point.completion("server"), CompletionMode::polling);
    EXPECT_EQ(point.completion("client"), CompletionMode::event);
  }
}

TEST(Matrix, MayVaryEveryParameterOfAPoint) {
  const Experiment experiment = read(R"(
name = "x"
[workload]
workload = "workloada"
system = "erda"
[matrix]
server_threads = [1, 2]
records = [10]
completion = ["polling"]
domain = ["wsp"]
ddio = ["off"]
receive_buffers = ["pm"]
transport = ["iwarp"]
persistence = ["correct"]
queue_depth = [1, 8])");
  const auto points = expand(experiment);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].number("server_threads"), 1U);
  EXPECT_EQ(points[1].number("queue_depth"), 8U);
  EXPECT_EQ(points[2].number("server_threads"), 2U);
  EXPECT_EQ(points[2].number("records"), 10U);
  EXPECT_EQ(points[3].completion("server"), CompletionMode::polling);
  EXPECT_EQ(points[3].completion("client"), CompletionMode::polling);
  EXPECT_EQ(points[3].text("domain"), "wsp");
  EXPECT_EQ(points[3].text("ddio"), "off");
  EXPECT_EQ(points[3].text("receive_buffers"), "pm");
  EXPECT_EQ(points[3].text("transport"), "iwarp");
  EXPECT_EQ(points[3].text("persistence"), "correct");
}

TEST(Experiment, ChecksNoHistoryUnlessAsked) {
  constexpr std::string_view start =
      "name = \"x\"\n[workload]\nworkload = \"a\"\nsystem = \"level\"\n";
  const auto checks = [&](std::string_view rest) {
    return expand(read(std::string(start) + std::string(rest)))[0].flag("check_history");
  };
  EXPECT_FALSE(checks(""));
  EXPECT_FALSE(checks("check_history = false\n"));
  EXPECT_TRUE(checks("check_history = true\n"));
  EXPECT_TRUE(checks("[matrix]\ncheck_history = [true]\n"));
}

TEST(Matrix, RemembersWhereANameWasWritten) {
  const auto points = expand(read(kExperiment));
  EXPECT_EQ(points[0].system.where, "x.toml:19");
  EXPECT_EQ(points[0].where("workload"), "x.toml:17");
}

TEST(Matrix, WithoutListsIsOnePoint) {
  const auto points =
      expand(read("name = \"x\"\n[workload]\nworkload = \"a\"\nsystem = \"level\"\n"));
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].system.text, "level");
}

TEST(Experiments, OfTheSourceTreeCanAllBeRead) {
  int read_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PERDURA_SOURCE_DIR "/experiments")) {
    if (entry.path().extension() != ".toml") continue;
    const Experiment experiment = load_experiment(entry.path(), test::declarations());
    EXPECT_EQ(experiment.name, entry.path().stem().string());
    EXPECT_FALSE(experiment.description.empty());
    ++read_files;
  }
  EXPECT_GE(read_files, 5);
}

TEST(Experiment, SaysHowItsPointsAreLoaded) {
  const Experiment experiment = read(R"(
name = "x"
[workload]
system = "erda"
workload = "workloada"
operations = 1000
warmup = 10
duration_ms = 200
ramp_ms = 30
steady_slope = 0.02
steady_window_ms = 50
[matrix]
load = ["fixed", "poisson"]
offered_load = [1000, 5000]
)");
  const auto points = expand(experiment);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].text("load"), "fixed");
  EXPECT_EQ(points[3].text("load"), "poisson");
  EXPECT_EQ(points[3].number("offered_load"), 5000U);
  EXPECT_EQ(points[3].number("duration_ms"), 200U);
  EXPECT_EQ(points[3].number("ramp_ms"), 30U);
  EXPECT_EQ(points[3].real("steady_slope"), 0.02);
  EXPECT_EQ(points[3].number("steady_window_ms"), 50U);
}

TEST(Experiment, IsAClosedLoopOfAFixedNumberUnlessItSays) {
  const PointSettings point = read(kExperiment).base;
  EXPECT_EQ(point.text("load"), "closed");
  EXPECT_FALSE(point.given("offered_load"));
  EXPECT_FALSE(point.given("duration_ms"));
  EXPECT_FALSE(point.given("ramp_ms"));
  EXPECT_FALSE(point.given("steady_slope"));
}

}  // namespace
}  // namespace perdura::harness
