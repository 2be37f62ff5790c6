#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/kv/kv_driver.h"
#include "bench/ycsb/point_workload.h"
#include "fake_kv.h"
#include "harness/config/document.h"
#include "harness/run/point.h"
#include "platform/base/error.h"

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

std::vector<Point> plan(const std::vector<Override>& changes = {}, NodeId nodes = 2,
                        std::string_view text = kText) {
  const kv::KvSystem table[] = {test::kFakeKv};
  const bench::KvDriver driver(table);
  const Driver* const drivers[] = {&driver};
  const Experiment experiment = read_experiment(
      Document::parse(std::string(text), "x.toml", changes), declarations_of(drivers));
  return plan_points(experiment, Locations({PERDURA_SOURCE_DIR}), driver, nodes);
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
  EXPECT_EQ(bench::workload_of(points[3]).max_value_size(), 64U);
  EXPECT_EQ(points[3].label, "value_size=64 fake repetition=1");
}

TEST(Plan, LabelsSayWhatVaries) {
  for (const char* parameter : {"clients", "queue_depth", "server_threads", "resizes"}) {
    const auto points = plan({parse_override(fmt::format("matrix.{}=[10, 20]", parameter))});
    ASSERT_GT(points.size(), 1U);
    for (const auto& [point, value] : {std::pair{points.front(), 10}, {points.back(), 20}}) {
      EXPECT_NE(point.label.find(fmt::format("{}={} ", parameter, value)), std::string::npos)
          << point.label;
    }
  }
}

TEST(Plan, NamesTheLoadThatAPointIsOffered) {
  const auto points = plan({parse_override("workload.load=\"poisson\""),
                            parse_override("matrix.offered_load=[1000, 5000]")});
  ASSERT_EQ(points.size(), 8U);
  EXPECT_EQ(points[0].label, "offered_load=1000 value_size=16 fake repetition=0");
  EXPECT_EQ(points[7].settings.number("offered_load"), 5000U);
  EXPECT_EQ(points[7].label, "offered_load=5000 value_size=64 fake repetition=1");
}

// They would be labels without an effect.
// What has no effect must not stand beside a result.
TEST(Plan, RefusesAConfigurationThatNothingDependsOn) {
  for (const char* setting : {"domain=\"dmp\"", "receive_buffers=\"pm\"", "transport=\"ib\""}) {
    const auto stated = parse_override(fmt::format("workload.{}", setting));
    EXPECT_NE(error_of(fmt::format("workload.{}", setting)).find("remove domain, receive_buffers"),
              std::string::npos)
        << setting;
    for (const char* persistence : {"paper", "correct"}) {
      const auto chosen = parse_override(fmt::format("workload.persistence=\"{}\"", persistence));
      EXPECT_NO_THROW(plan({stated, chosen})) << setting;
    }
  }
  EXPECT_NE(error_of("workload.update=\"single\"").find("unknown key 'update'"), std::string::npos);
  EXPECT_EQ(error_of("workload.ddio=\"off\""), "no error");
}

TEST(Plan, RefusesAnOfferedLoadWithoutAnOpenLoopAndAnOpenLoopWithoutALoad) {
  constexpr std::string_view kClosed =
      "offered_load is for an open loop, and a closed loop offers what the system takes; set load "
      "to \"poisson\" or \"fixed\", or remove it";
  EXPECT_EQ(
      error_of("matrix.load=[\"closed\", \"poisson\"]"),
      "--set matrix.load=[\"closed\", \"poisson\"]: load needs offered_load = ..., operations "
      "per second of all clients together");
  EXPECT_EQ(error_of("matrix.offered_load=[1, 2]"),
            fmt::format("--set matrix.offered_load=[1, 2]: {}", kClosed));
  std::string text(kText);
  text.insert(text.find("workload = "), "load = [\"fixed\", \"closed\"]\noffered_load = [1, 2]\n");
  try {
    plan({}, 2, text);
    ADD_FAILURE() << "no error";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), fmt::format("x.toml:10: {}", kClosed));
  }
}

TEST(Plan, GivesTheWorkloadTheExperimentsNumbers) {
  const Point point = plan().front();
  EXPECT_EQ(bench::workload_of(point).loaded_keys(), 50U);
  EXPECT_EQ(bench::workload_of(point).operation_count, 20U);
  EXPECT_EQ(bench::workload_of(point).key_size, 16U);
  EXPECT_EQ(bench::workload_name(point), "workloada");
  EXPECT_EQ(point.parameters.at("capacity"), 7U);
}

TEST(Plan, TakesTheClientNodesThatThereAreUnlessTheExperimentSays) {
  EXPECT_EQ(plan({}, 4).front().roles.nodes_of("client"), 3U);
  EXPECT_EQ(plan({parse_override("workload.client_nodes=2")}, 4).front().roles.nodes_of("client"),
            2U);
}

TEST(Plan, NamesWhatDoesNotExist) {
  EXPECT_EQ(error_of("matrix.system=[\"nosuch\"]"),
            "--set matrix.system=[\"nosuch\"]: unknown system 'nosuch'; known are: fake");
  EXPECT_EQ(error_of("systems.nosuch.a=1"),
            "--set systems.nosuch.a=1: unknown system 'nosuch'; known are: fake; a variant of one "
            "needs variant_of = \"...\"");
  const std::string workload = error_of("matrix.workload=[\"nosuch\"]");
  EXPECT_TRUE(workload.starts_with(
      "--set matrix.workload=[\"nosuch\"]: unknown workload 'nosuch'; known are: create-only, "))
      << workload;
}

constexpr std::string_view kVariants =
    "name = \"x\"\n"
    "[workload]\n"
    "records = 50\n"
    "operations = 20\n"
    "workload = \"workloada\"\n"
    "[matrix]\n"
    "system = [\"fake\", \"fake-small\"]\n"
    "[systems.fake]\n"
    "capacity = 7\n"
    "lose_every = 3\n"
    "[systems.fake-small]\n"
    "variant_of = \"fake\"\n"
    "capacity = 2\n";

TEST(Plan, AVariantRunsItsSystemUnderItsOwnName) {
  const auto points = plan({}, 1, kVariants);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].settings.system.text, "fake");
  EXPECT_EQ(points[0].system_name, "fake");
  EXPECT_EQ(points[0].parameters.at("capacity"), 7U);
  EXPECT_EQ(points[1].settings.system.text, "fake");
  EXPECT_EQ(points[1].system_name, "fake-small");
  EXPECT_EQ(points[1].label, "fake-small");
  EXPECT_EQ(points[1].parameters.at("capacity"), 2U);
}

TEST(Plan, AVariantIsLikeItsSystemInAllThatItDoesNotSay) {
  EXPECT_EQ(plan({}, 1, kVariants).back().parameters.at("lose_every"), 3U);
}

TEST(Plan, RefusesVariantsOfNothingAndInPlaceOfSystems) {
  const auto error = [](std::string_view change) -> std::string {
    try {
      plan({parse_override(change)}, 1, kVariants);
    } catch (const UsageError& problem) {
      return problem.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("systems.fake-small.variant_of=\"nosuch\""),
            "--set systems.fake-small.variant_of=\"nosuch\": variant_of in [systems.fake-small]: "
            "unknown system 'nosuch'; known are: fake");
  EXPECT_EQ(error("systems.fake.variant_of=\"erda\""),
            "--set systems.fake.variant_of=\"erda\": variant_of in [systems.fake]: 'fake' is a "
            "system; give the variant another name");
  EXPECT_EQ(error("systems.fake-tiny.variant_of=\"fake-small\""),
            "--set systems.fake-tiny.variant_of=\"fake-small\": variant_of in "
            "[systems.fake-tiny]: 'fake-small' is a variant itself; name a system and repeat the "
            "parameters");
  EXPECT_EQ(error("systems.fake-small.variant_of=\"fake-small\""),
            "--set systems.fake-small.variant_of=\"fake-small\": variant_of in "
            "[systems.fake-small]: 'fake-small' is a variant itself; name a system and repeat the "
            "parameters");
  EXPECT_EQ(error("matrix.system=[\"fake-big\"]"),
            "--set matrix.system=[\"fake-big\"]: unknown system 'fake-big'; known are: fake, "
            "fake-small");
}

TEST(Plan, RefusesWorkloadsThatResultsCouldNotTellApart) {
  const std::string path = PERDURA_SOURCE_DIR "/workloads/workloada";
  const std::string change = "matrix.workload=[\"workloada\", \"" + path + "\"]";
  EXPECT_EQ(error_of(change), "--set " + change + ": workloads workloada and " + path +
                                  " have the same name in results");
}

TEST(StoreConfig, HoldsAllThatThePointWrites) {
  Point point = plan().front();
  point.settings.set("clients", 3);
  const kv::KvConfig config = bench::store_config(point);
  EXPECT_EQ(config.records, 50U);
  EXPECT_GE(config.writes, 60U);
  EXPECT_LE(config.writes, 70U);
  EXPECT_EQ(config.sessions, 3U);
  EXPECT_EQ(config.max_value_size, 16U);
}

}  // namespace
}  // namespace perdura::harness
