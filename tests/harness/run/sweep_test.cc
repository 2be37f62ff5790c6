// Whole sweeps: same input, same bytes; one bad point does not stop the others.
#include "harness/run/sweep.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "bench/client_server.h"
#include "bench/kv/kv_driver.h"
#include "bench/kv/kv_parameters.h"
#include "fake_kv.h"
#include "harness/config/override.h"
#include "harness/run/platform_factory.h"
#include "platform/base/error.h"
#include "platform/host/numa.h"
#include "platform/sim/sim_platform.h"
#include "report/compare/matching.h"
#include "report/result_folder.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExperiment =
    "name = \"sweep\"\n"
    "profile = \"erda-connectx3\"\n"
    "[workload]\n"
    "records = 50\n"
    "operations = 200\n"
    "key_size = 16\n"
    "system = \"fake\"\n"
    "[matrix]\n"
    "workload = [\"workloada\", \"create-only\"]\n"
    "clients = [1, 3]\n"
    "value_size = [16, 64]\n";

std::string read(const fs::path& file) {
  std::ifstream input(file);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

class SweepTest : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_ / "sweep.toml") << kExperiment; }
  ExitCode run(const std::string& out, std::vector<Override> changes = {}) {
    RunRequest request;
    request.experiment.experiment = (folder_ / "sweep.toml").string();
    request.experiment.overrides = std::move(changes);
    request.out = folder_ / out;
    request.command_line = "test";
    request.quiet = true;
    return run_experiment(request, Locations({PERDURA_SOURCE_DIR}), drivers_, ranks_);
  }
  std::size_t lines_with(const fs::path& file, std::string_view text) {
    std::ifstream input(file);
    std::size_t count = 0;
    for (std::string line; std::getline(input, line);) {
      if (line.find(text) != std::string::npos) ++count;
    }
    return count;
  }

  const kv::KvSystem table_[1] = {test::kFakeKv};
  const bench::KvDriver kv_{table_};
  const Driver* const drivers_[1] = {&kv_};
  test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  int argc_ = 0;
  char** argv_ = nullptr;
  Ranks ranks_{argc_, argv_};
};

TEST_F(SweepTest, TheSameSeedGivesTheSameBytes) {
  EXPECT_EQ(run("a"), ExitCode::done);
  EXPECT_EQ(run("b"), ExitCode::done);
  for (const auto file : {"points.csv", "histograms.csv", "experiment.toml"}) {
    EXPECT_FALSE(read(folder_ / "a" / file).empty());
    EXPECT_EQ(read(folder_ / "a" / file), read(folder_ / "b" / file)) << file;
  }
}

TEST_F(SweepTest, WritesAVariantUnderItsOwnName) {
  EXPECT_EQ(run("a", {parse_override("workload.system=\"fake-big\""),
                      parse_override("systems.fake-big.variant_of=\"fake\"")}),
            ExitCode::done);
  EXPECT_EQ(lines_with(folder_ / "a" / "points.csv", ",erda-connectx3,fake-big,workloada,"), 12U);
}

// A system says what it counts of itself in its entry of the table, and nothing else knows of it.
TEST_F(SweepTest, WhatASystemCountsReachesResultsFiguresAndComparisons) {
  ASSERT_EQ(run("a"), ExitCode::done);
  ASSERT_EQ(run("b", {parse_override("seed=9")}), ExitCode::done);
  const auto points = report::Points::read(folder_ / "a" / "points.csv");
  ASSERT_TRUE(points) << points.error().message;
  const auto* const column = points->schema().find("puts_per_op");
  ASSERT_NE(column, nullptr) << "the manifest describes it";
  EXPECT_EQ(column->shown.axis, "Puts per operation");
  EXPECT_EQ(points->schema().quantity("half_puts").axis_with_unit(), "Halves of puts (puts)");
  std::size_t checked = 0;
  for (std::size_t row = 0; row < points->size(); ++row) {
    const bool all = points->text(row, "operation") == "all";
    ASSERT_EQ(points->number(row, "puts_per_op").has_value(), all);
    if (!all || points->text(row, "workload") != "create-only") continue;
    EXPECT_EQ(points->number(row, "puts_per_op"), 1) << "every operation is a put";
    EXPECT_EQ(points->number(row, "half_puts"), 100) << "of 200 in the measured interval";
    EXPECT_GT(points->number(row, "server_nvm_bytes_per_op").value(), 0);
    EXPECT_EQ(points->number(row, "client_nvm_bytes_per_op"), 0);
    ++checked;
  }
  EXPECT_EQ(checked, 4U);

  const std::string figure =
      "[[figure]]\nid = \"1\"\ntitle = \"Puts\"\nx = \"value_size\"\ny = \"half_puts\"\n"
      "plot = \"bars\"\n";
  std::ofstream(folder_ / "a" / "experiment.toml", std::ios::app) << figure;
  const auto folders = report::read_result_folders(folder_ / "a");
  ASSERT_TRUE(folders) << folders.error().message;
  const schema::FigureSpec& spec = folders->front().specs.figures.front();
  EXPECT_EQ(spec.schema.quantity(spec.y).noun, "halves of puts");

  const auto matching = compare::match({folder_ / "a" / "points.csv"},
                                       {folder_ / "b" / "points.csv"}, {"server_nvm_bytes_per_op"});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_EQ(matching->pairs.size(), 8U);
  const auto refused =
      compare::match({folder_ / "a" / "points.csv"}, {folder_ / "b" / "points.csv"}, {"half_puts"});
  EXPECT_FALSE(refused) << "nobody knows what of it is better";
}

// What is said of such a column by a figure is checked before a sweep that may take hours.
TEST_F(SweepTest, AFigureOfWhatASystemCountsMayBeAskedFor) {
  const std::string figures =
      "[[figure]]\nid = \"1\"\ntitle = \"Puts\"\nx = \"value_size\"\nplot = \"bars\"\ny = ";
  std::ofstream(folder_ / "sweep.toml", std::ios::app) << figures << "\"puts_per_op\"\n";
  EXPECT_EQ(run("a"), ExitCode::done);
  std::ofstream(folder_ / "sweep.toml") << kExperiment << figures << "\"gets_per_op\"\n";
  EXPECT_THROW(run("b"), UsageError);
}

TEST_F(SweepTest, WritesACourseOverTimeIfAskedTo) {
  run("a");
  EXPECT_FALSE(fs::exists(folder_ / "a" / "timeline.csv"));
  run("b", {parse_override("timeline.interval_us=10")});
  run("c", {parse_override("timeline.interval_us=10")});
  EXPECT_GT(lines_with(folder_ / "b" / "timeline.csv", "fake,create-only,16,64,"), 2U);
  EXPECT_EQ(read(folder_ / "b" / "timeline.csv"), read(folder_ / "c" / "timeline.csv"));
}

TEST_F(SweepTest, DdioIsThePointsElseTheProfiles) {
  const Experiment experiment = load_experiment(folder_ / "sweep.toml", declarations_of(drivers_));
  const Locations locations({PERDURA_SOURCE_DIR});
  const auto factory = create_platform_factory(experiment, locations, ranks_);
  const bool of_profile =
      sim::load_profile(locations.find(FileKind::profile, experiment.profile)).ddio;
  const auto ddio_with = [&](const std::string& setting) {
    Point point(bench::kv_parameters());
    point.roles = bench::client_server(1);
    if (!setting.empty()) point.settings.set("ddio", setting);
    const auto platform = factory->create(point);
    return dynamic_cast<const sim::SimPlatform&>(*platform).profile().ddio;
  };
  EXPECT_EQ(ddio_with(""), of_profile);
  EXPECT_TRUE(ddio_with("on"));
  EXPECT_FALSE(ddio_with("off"));
  EXPECT_EQ(ddio_with(""), of_profile) << "points must not change each other";
}

TEST_F(SweepTest, OnSharedMemoryANodesMemoryIsOnTheNumaNodeOfItsHost) {
  Experiment experiment = load_experiment(folder_ / "sweep.toml", declarations_of(drivers_));
  experiment.platform.text = "shm";
  Site site;
  site.hosts = {SiteHost{.name = "a", .role = "server", .numa_node = 0},
                SiteHost{.name = "b", .role = "client"}};
  const auto factory =
      create_platform_factory(experiment, Locations({PERDURA_SOURCE_DIR}), ranks_, site);
  Point point;
  point.roles = bench::client_server(1);
  const auto platform = factory->create(point);
  const auto binding_of = [&](NodeId node) {
    const auto region = platform->local_node(node)->create_region("x", 4096, pmem::Medium::pm);
    return memory_binding_at(region->data());
  };
  EXPECT_EQ(binding_of(0), 0U);
  EXPECT_EQ(binding_of(1), std::nullopt);
}

TEST_F(SweepTest, AnotherSeedGivesOtherBytes) {
  run("a");
  run("b", {{"seed", "2", "--seed 2"}});
  EXPECT_NE(read(folder_ / "a" / "histograms.csv"), read(folder_ / "b" / "histograms.csv"));
}

TEST_F(SweepTest, APointThatFailsDoesNotStopTheOthers) {
  EXPECT_EQ(run("a", {parse_override("systems.fake.capacity=100")}), ExitCode::failed);
  EXPECT_EQ(lines_with(folder_ / "a" / "points.csv", ",all,valid,"), 4U);
  EXPECT_EQ(lines_with(folder_ / "a" / "points.csv", ",all,failed,"), 4U);
  EXPECT_NE(read(folder_ / "a" / "manifest.json").find("\"status\": \"complete\""),
            std::string::npos);
}

TEST_F(SweepTest, AnImpossiblePointStopsTheSweepAndIsNamed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("a", {parse_override("systems.fake.refuse_open=1")}), ExitCode::usage);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "perdura: " + (folder_ / "sweep.toml").string() +
                ": workloada clients=1 value_size=16: the fake was told to refuse\n");
}

TEST_F(SweepTest, MistakesAreFoundBeforeAFolderIsMade) {
  EXPECT_THROW(run("a", {parse_override("matrix.workload=[\"workloada\", \"workloade\"]")}),
               UsageError);
  EXPECT_THROW(run("a", {parse_override("profile=\"nosuch\"")}), UsageError);
  EXPECT_THROW(run("a", {parse_override("driver=\"nosuch\"")}), UsageError);
  EXPECT_THROW(run("a", {parse_override("platform=\"nosuch\"")}), UsageError);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(SweepTest, KeepsTheExperimentAsItWasRun) {
  run("a", {parse_override("workload.operations=10")});
  const std::string text = read(folder_ / "a" / "experiment.toml");
  EXPECT_NE(text.find("operations = 10\n"), std::string::npos);
  EXPECT_EQ(text.find("operations = 200"), std::string::npos);
}

}  // namespace
}  // namespace perdura::harness
