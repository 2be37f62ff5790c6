// The driver that counts the connections of a cluster: what it counts is what section 5.5.2 of the
// dissertation says.
#include "bench/connections/connections_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/bench/driver_under_test.h"

namespace perdura::bench {
namespace {

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"connections\"\n"
    "platform = \"sim\"\n"
    "[matrix]\n"
    "system = [\"per-process\"]\n";

const DriverUnderTest& tested() {
  static const ConnectionsDriver driver;
  static const DriverUnderTest one(driver, kText);
  return one;
}

double counted(std::string_view system, std::uint64_t servers, std::uint64_t processes,
               const char* column) {
  const auto points = tested().plan({fmt::format("workload.cluster_size={}", servers),
                                     fmt::format("workload.processes={}", processes),
                                     fmt::format("matrix.system=[\"{}\"]", system)});
  return tested().measure(points.front(), "sim").declared.at(column);
}

// N^2 p^2, of which none is within a server, and each is counted once. A device has those of its
// processes.
TEST(Connections, OfProcessesGrowWithTheSquaresOfServersAndProcesses) {
  for (const std::uint64_t n : {2, 3, 5}) {
    for (const std::uint64_t p : {1, 2, 4}) {
      EXPECT_EQ(counted("per-process", n, p, "connections"), n * (n - 1) / 2 * p * p);
      EXPECT_EQ(counted("per-process", n, p, "queue_pairs_per_device"), (n - 1) * p * p);
    }
  }
}

TEST(Connections, OfServersDoNotDependOnProcesses) {
  for (const std::uint64_t p : {1, 4}) {
    EXPECT_EQ(counted("per-server", 5, p, "connections"), 10);
    EXPECT_EQ(counted("per-server", 5, p, "queue_pairs_per_device"), 4);
  }
}

TEST(Connections, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  EXPECT_NE(tested().refusal({"matrix.system=[\"erda\"]"}).find("unknown system 'erda'"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"workload.cluster_size=1"}).find("cluster_size"), std::string::npos);
  EXPECT_THROW(ConnectionsDriver().check_platform("shm", "x.toml:3"), UsageError);
}

TEST(Connections, PlansItsExperiment) {
  const auto experiment = harness::load_experiment(
      PERDURA_SOURCE_DIR "/experiments/filemr-connections.toml", tested().declarations());
  EXPECT_GE(
      plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), ConnectionsDriver(), 1)
          .size(),
      6U);
}

}  // namespace
}  // namespace perdura::bench
