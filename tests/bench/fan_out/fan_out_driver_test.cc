// Writes to several nodes: a multicast WRITE leaves its sender once, reaches all, and is otherwise
// like a WRITE to each.
#include "bench/fan_out/fan_out_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/fan_out/fan_out_run.h"
#include "tests/bench/driver_under_test.h"

namespace perdura::bench {
namespace {

using harness::Measurement;

constexpr std::uint64_t kWrites = 100;

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"fan-out\"\n"
    "platform = \"sim\"\n"
    "[workload]\n"
    "operations = 100\n"
    "warmup = 10\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "system = [\"multicast\"]\n";

const DriverUnderTest& tested() {
  static const FanOutDriver driver;
  static const DriverUnderTest one(driver, kText);
  return one;
}

// The client reads all replicas in the end; the point is invalid if one lacks the last writes.
Measurement measured(std::string_view system, std::uint64_t replicas,
                     std::vector<std::string> more = {}) {
  more.push_back(fmt::format("workload.replicas={}", replicas));
  more.push_back(fmt::format("matrix.system=[\"{}\"]", system));
  const Measurement result = tested().measure(tested().plan(more).front(), "sim");
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
  EXPECT_EQ(result.kinds.at(kReplicatedWrite).latency.count(), kWrites);
  return result;
}

double mean(const Measurement& measurement) {
  return measurement.kinds.at(kReplicatedWrite).latency.mean();
}
std::uint64_t sent(const Measurement& measurement) {
  return measurement.costs_of("client").traffic.sent;
}

TEST(FanOut, OneReplicaTakesTheSameEitherWay) {
  for (const char* const size : {"workload.value_size=64", "workload.value_size=65536"}) {
    EXPECT_EQ(mean(measured("multicast", 1, {size})), mean(measured("writes", 1, {size}))) << size;
    EXPECT_EQ(sent(measured("multicast", 1, {size})), sent(measured("writes", 1, {size}))) << size;
  }
}

TEST(FanOut, AMulticastWriteLeavesItsSenderOnce) {
  const std::uint64_t once = sent(measured("writes", 1));
  for (const std::uint64_t replicas : {2, 5}) {
    EXPECT_EQ(sent(measured("writes", replicas)), replicas * once);
    EXPECT_EQ(sent(measured("multicast", replicas)), once);
    EXPECT_EQ(measured("multicast", replicas).costs_of("server").traffic.received,
              measured("writes", replicas).costs_of("server").traffic.received);
  }
}

// Section 5.5.4: the latency of N WRITEs grows with N, and so does the time of many of them.
TEST(FanOut, WritesWaitForEachOtherAndAMulticastWriteDoesNot) {
  const std::vector<std::string> many{"workload.queue_depth=16", "workload.value_size=65536"};
  for (const std::vector<std::string>& load : {std::vector<std::string>{}, many}) {
    const Measurement one = measured("writes", 1, load);
    const Measurement four = measured("writes", 4, load);
    const Measurement multicast = measured("multicast", 4, load);
    EXPECT_GT(mean(four), mean(one));
    EXPECT_LT(mean(multicast), mean(measured("writes", 2, load)));
    EXPECT_GE(mean(multicast), mean(one));
    EXPECT_LT(multicast.elapsed, four.elapsed);
  }
  EXPECT_GT(measured("writes", 4, many).elapsed, 3 * measured("writes", 1, many).elapsed);
}

TEST(FanOut, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  EXPECT_NE(tested().refusal({"matrix.system=[\"erda\"]"}).find("unknown system 'erda'"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(tested().refusal({"workload.replicas=0"}).find("replicas"), std::string::npos);
  EXPECT_THROW(FanOutDriver().check_platform("shm", "x.toml:3"), UsageError);
}

TEST(FanOut, PlansItsExperiment) {
  const auto experiment = harness::load_experiment(
      PERDURA_SOURCE_DIR "/experiments/filemr-multicast.toml", tested().declarations());
  EXPECT_GE(
      plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), FanOutDriver(), 1).size(),
      8U);
}

}  // namespace
}  // namespace perdura::bench
