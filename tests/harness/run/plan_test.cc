#include <gtest/gtest.h>

#include "bench/kv/kv_driver.h"
#include "fake_kv.h"
#include "harness/run/point.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

constexpr std::string_view kText =
    "name = \"x\"\n"
    "seed = 10\n"
    "repetitions = 2\n"
    "[workload]\n"
    "records = 50\n"
    "operations = 20\n"
    "key_size = 16\n"
    "[matrix]\n"
    "workload = [\"workloada\"]\n"
    "value_size = [16, 64]\n"
    "system = [\"fake\"]\n"
    "[systems.fake]\n"
    "capacity = 7\n";

std::vector<Point> plan(const std::vector<Override>& changes = {}, NodeId client_nodes = 1) {
  const Experiment experiment =
      read_experiment(Document::parse(std::string(kText), "x.toml", changes));
  const systems::KvSystem table[] = {test::kFakeKv};
  return plan_points(experiment, Locations({PERDURA_SOURCE_DIR}), bench::KvDriver(table),
                     client_nodes);
}

std::string error_of(std::string_view change) {
  try {
    plan({parse_override(change)});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, HasEachPointWithItsRepetitions) {
  const auto points = plan();
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].repetition, 1U);
  EXPECT_EQ(points[1].seed, 11U);
  EXPECT_EQ(points[2].repetition, 0U);
  EXPECT_EQ(points[2].seed, 10U);
  EXPECT_EQ(points[3].workload.max_value_size(), 64U);
  EXPECT_EQ(points[3].label, "value_size=64 fake repetition=1");
}

TEST(Plan, GivesTheWorkloadTheExperimentsNumbers) {
  const Point point = plan().front();
  EXPECT_EQ(point.workload.loaded_keys(), 50U);
  EXPECT_EQ(point.workload.operation_count, 20U);
  EXPECT_EQ(point.workload.key_size, 16U);
  EXPECT_EQ(point.workload_name, "workloada");
  EXPECT_EQ(point.parameters.at("capacity"), 7U);
}

TEST(Plan, TakesTheClientNodesThatThereAreUnlessTheExperimentSays) {
  EXPECT_EQ(plan({}, 3).front().client_nodes, 3U);
  EXPECT_EQ(plan({parse_override("workload.client_nodes=2")}, 3).front().client_nodes, 2U);
}

TEST(Plan, NamesWhatDoesNotExist) {
  EXPECT_EQ(error_of("matrix.system=[\"nosuch\"]"),
            "--set matrix.system=[\"nosuch\"]: unknown system 'nosuch'; known are: fake");
  EXPECT_EQ(error_of("systems.nosuch.a=1"),
            "--set systems.nosuch.a=1: unknown system 'nosuch'; known are: fake");
  const std::string workload = error_of("matrix.workload=[\"nosuch\"]");
  EXPECT_TRUE(workload.starts_with(
      "--set matrix.workload=[\"nosuch\"]: unknown workload 'nosuch'; known are: create-only, "))
      << workload;
}

TEST(Plan, RefusesWorkloadsThatResultsCouldNotTellApart) {
  const std::string path = PERDURA_SOURCE_DIR "/workloads/workloada";
  const std::string change = "matrix.workload=[\"workloada\", \"" + path + "\"]";
  EXPECT_EQ(error_of(change), "--set " + change + ": workloads workloada and " + path +
                                  " have the same name in results");
}

TEST(StoreConfig, HoldsAllThatThePointWrites) {
  Point point = plan().front();
  point.settings.clients = 3;
  const systems::KvConfig config = bench::store_config(point);
  EXPECT_EQ(config.records, 50U);
  EXPECT_GE(config.writes, 60U);
  EXPECT_LE(config.writes, 70U);
  EXPECT_EQ(config.sessions, 3U);
  EXPECT_EQ(config.max_value_size, 16U);
}

}  // namespace
}  // namespace perdura::harness
