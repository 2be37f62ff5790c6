// What the roles of a point use, and what profiles say of roles: of the log's server and client.
#include <gtest/gtest.h>

#include <fstream>

#include "bench/log/remote_log_driver.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "harness/config/document.h"
#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kAppends = 500;
constexpr std::uint32_t kRecord = 64;

constexpr std::string_view kLogExperiment =
    "name = \"x\"\n"
    "driver = \"remote-log\"\n"
    "[workload]\n"
    "workload = \"create-only\"\n"
    "records = 0\n"
    "operations = 500\n"
    "warmup = 20\n"
    "value_size = 64\n"
    "completion = \"polling\"\n"
    "system = \"send-copy-flush\"\n"
    "[systems.send-copy-flush]\n"
    "slots = 16\n";

harness::Point log_point() {
  static const RemoteLogDriver driver;
  const harness::Driver* const drivers[] = {&driver};
  const harness::Experiment experiment =
      read_experiment(harness::Document::parse(std::string(kLogExperiment), "x.toml", {}),
                      harness::declarations_of(drivers));
  return plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver, 1).front();
}

// On every platform: each append takes its record to the server, and an answer back.
TEST(RolesOfTheLog, BytesAndMemoryAreTheirOwn) {
  for (const std::string& name : perdura::test::platform_names()) {
    SCOPED_TRACE(name);
    const harness::Point point = log_point();
    const auto platform = perdura::test::make_platform(name, 2);
    const harness::Measurement measured = RemoteLogDriver().run(*platform, point);
    ASSERT_EQ(measured.verdict, harness::Verdict::valid) << measured.reason;
    const harness::RoleCosts server = measured.costs_of("server");
    const harness::RoleCosts client = measured.costs_of("client");
    EXPECT_GE(client.traffic.sent, kAppends * kRecord);
    EXPECT_GT(server.traffic.sent, 0U);
    EXPECT_EQ(server.traffic.received, client.traffic.sent);
    EXPECT_EQ(server.traffic.sent, client.traffic.received);
    EXPECT_GE(server.peak_memory.pm, 16U * kRecord) << "the log";
    EXPECT_EQ(client.peak_memory.pm, 0U);
    EXPECT_GT(client.peak_memory.dram, 0U);
    EXPECT_EQ(measured.declared.at("client_sent_bytes_per_op"),
              static_cast<double>(client.traffic.sent));
    EXPECT_EQ(measured.declared.at("server_nvm_peak_bytes"),
              static_cast<double>(server.peak_memory.pm));
  }
}

// Records are persisted in the server's memory; what the clients have does not matter.
TEST(RolesOfTheLog, AProfileMayGiveTheServerOtherMemory) {
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "log-roles");
  const std::string base = perdura::test::erda_testbed().text;
  const auto appends_with = [&](const std::string& tables) {
    const std::string file = folder.path() / "profile.toml";
    std::ofstream(file) << base << tables;
    sim::SimPlatform platform(sim::load_profile(file), 2);
    const harness::Measurement measured = RemoteLogDriver().run(platform, log_point());
    return measured.kinds.at(kind_of(ycsb::OperationKind::insert)).latency;
  };
  const measure::Histogram usual = appends_with("");
  EXPECT_EQ(appends_with("[role.client.pm]\nwrite_latency_ns = 2250\n").mean(), usual.mean());
  // Each append waits for one flush, and so for the memory's 2250 ns instead of 225 ns.
  const double more = appends_with("[role.server.pm]\nwrite_latency_ns = 2250\n").mean();
  EXPECT_GE(more - usual.mean(), 2250 - 225);
}

}  // namespace
}  // namespace perdura::bench
