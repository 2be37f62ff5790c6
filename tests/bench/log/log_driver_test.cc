// The driver of the service's logs: every system of the table is measured on every platform, its
// latency is that of what it does, and what cannot be is refused before anything runs.
#include "bench/log/log_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/log/libpmemlog_target.h"
#include "harness/config/document.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;

constexpr std::uint64_t kAppended = 300;

constexpr std::string_view kExperiment =
    "name = \"x\"\n"
    "driver = \"log\"\n"
    "[workload]\n"
    "operations = 300\n"
    "warmup = 20\n"
    "value_size = 64\n"
    "capacity = 16\n"
    "completion = \"polling\"\n"
    "persistence = \"paper\"\n"
    "domain = \"mhp\"\n"
    "ddio = \"on\"\n"
    "transport = \"ib\"\n"
    "[matrix]\n"
    "system = [\"filemr-log\"]\n";

const LogDriver& log_driver() {
  static const LogDriver driver(systems::log_systems());
  return driver;
}

harness::Declarations log_declarations() {
  const harness::Driver* const drivers[] = {&log_driver()};
  return harness::declarations_of(drivers);
}

std::vector<Point> points_of(const std::vector<std::string>& changes) {
  std::vector<harness::Override> overrides;
  for (const std::string& change : changes) overrides.push_back(harness::parse_override(change));
  const harness::Experiment experiment = read_experiment(
      harness::Document::parse(std::string(kExperiment), "x.toml", overrides), log_declarations());
  return plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), log_driver(), 1);
}

std::string why_not(const std::vector<std::string>& changes) {
  try {
    points_of(changes);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string of_system(std::string_view system) {
  return fmt::format("matrix.system=[\"{}\"]", system);
}

Measurement measured(const std::string& platform, const std::vector<std::string>& changes) {
  return log_driver().run(*perdura::test::make_platform(platform, 2), points_of(changes).front());
}

double mean_of(const std::vector<std::string>& changes) {
  const Measurement result = measured("sim", changes);
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
  return result.kinds.at({0, "append"}).latency.mean();
}

TEST(LogsDriver, MeasuresEachAppendOfEachSystem) {
  std::vector<std::string_view> names{"local-log"};
  for (const services::LogSystem& system : systems::log_systems()) {
    names.push_back(system.info.name);
  }
  for (const std::string& platform : perdura::test::platform_names()) {
    for (const std::string_view name : names) {
      SCOPED_TRACE(fmt::format("{} on {}", name, platform));
      const Measurement result = measured(platform, {of_system(name)});
      EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
      EXPECT_EQ(result.usage_error, "");
      const auto& appends = result.kinds.at({0, "append"});
      EXPECT_EQ(appends.latency.count(), kAppended);
      EXPECT_EQ(appends.errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
      EXPECT_GE(result.writes().total().bytes_issued, kAppended * 64);
    }
  }
}

std::string why_not_on(std::string_view platform, const Point& point) {
  try {
    log_driver().check_platform_of(point, platform, "x.toml:4");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

// The library works on a file, which it leaves to nobody, and which no model knows.
TEST(LogsDriver, MeasuresLibpmemlogInRealTimeOnly) {
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "libpmemlog");
  const std::string path = fmt::format("systems.libpmemlog.path=\"{}\"", folder.path().string());
  const Point point = points_of({of_system("libpmemlog"), path}).front();
  EXPECT_EQ(why_not_on("sim", point),
            "x.toml:4: the system libpmemlog takes real time; set platform to \"shm\", or measure "
            "local-log");
  EXPECT_EQ(why_not_on("sim", points_of({of_system("local-log")}).front()), "no error");
  if (!have_libpmemlog()) {
    EXPECT_NE(why_not_on("shm", point).find("install libpmemlog-dev"), std::string::npos);
    return;
  }
  EXPECT_EQ(why_not_on("shm", point), "no error");
  // Room for three quarters of the records, so that the log is full once.
  const std::vector<std::string> changes{of_system("libpmemlog"), path,
                                         "workload.value_size=10000"};
  const Measurement result = measured("shm", changes);
  EXPECT_EQ(result.verdict, harness::Verdict::valid) << result.reason;
  EXPECT_EQ(result.kinds.at({0, "append"}).latency.count(), kAppended);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const Measurement nowhere =
      measured("shm", {of_system("libpmemlog"), "systems.libpmemlog.path=\"/proc\""});
  EXPECT_NE(nowhere.usage_error.find("path in [systems.libpmemlog] must be a directory"),
            std::string::npos)
      << nowhere.usage_error;
}

// A local log sends nothing; all others move each record to the server.
TEST(LogsDriver, OnlyALocalLogSendsNothing) {
  const auto bytes_from_client = [](std::string_view system) {
    return measured("sim", {of_system(system)}).costs_of("client").traffic.sent;
  };
  const std::uint64_t local = bytes_from_client("local-log");
  for (const services::LogSystem& system : systems::log_systems()) {
    EXPECT_GT(bytes_from_client(system.info.name), local + kAppended * 64) << system.info.name;
  }
}

// A flush costs a round trip that an APPEND alone does not, and a message of the server's CPU more.
TEST(LogsDriver, TellsMethodsAndSystemsApart) {
  const std::string filemr = of_system("filemr-log");
  const double append = mean_of({filemr});
  const double flushed = mean_of({filemr, "systems.filemr-log.flush=1"});
  const double asked =
      mean_of({filemr, "workload.persistence=\"correct\"", "workload.domain=\"dmp\""});
  EXPECT_LT(mean_of({of_system("local-log")}), append);
  EXPECT_LT(append, flushed);
  EXPECT_LT(flushed, asked);
}

TEST(LogsDriver, NamesTheMethodThatItChose) {
  const std::vector<std::string> correct{"workload.persistence=\"correct\"",
                                         "workload.domain=\"wsp\""};
  EXPECT_EQ(measured("sim", correct).method, "write");
  EXPECT_EQ(measured("sim", {}).method, "") << "the paper's";
}

TEST(LogsDriver, RefusesWhatCannotBe) {
  EXPECT_EQ(why_not({}), "no error");
  EXPECT_NE(why_not({of_system("erda")}).find("unknown system 'erda'"), std::string::npos);
  EXPECT_NE(why_not({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(
      why_not({of_system("local-log"), "workload.persistence=\"correct\""}).find("has no method"),
      std::string::npos);
  EXPECT_NE(why_not({"systems.filemr-log.flash=1"}).find("did you mean 'flush'?"),
            std::string::npos);
  EXPECT_NE(why_not({"workload.capacity=0"}).find("capacity in [workload] must be"),
            std::string::npos);
}

// The paper's method of remote-log is that of one server.
TEST(LogsDriver, AsksForTheServerThatDecidesTheMethod) {
  std::string text(kExperiment);
  text.erase(text.find("domain"), std::string_view("domain = \"mhp\"\n").size());
  const harness::Override remote = harness::parse_override(of_system("remote-log"));
  const harness::Experiment experiment =
      read_experiment(harness::Document::parse(text, "x.toml", {&remote, 1}), log_declarations());
  try {
    plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), log_driver(), 1);
    FAIL() << "nobody said the domain";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("the method of remote-log depends on the server; add persistence = "
                        "\"paper\" and domain to"),
              std::string::npos)
        << error.what();
  }
}

TEST(LogsDriver, PlansItsExperiments) {
  for (const char* name : {"filemr-log", "filemr-log-shm"}) {
    const auto experiment = harness::load_experiment(
        fmt::format("{}/experiments/{}.toml", PERDURA_SOURCE_DIR, name), log_declarations());
    EXPECT_GE(
        plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), log_driver(), 1).size(),
        5U);
  }
}

}  // namespace
}  // namespace perdura::bench
