// The driver of RemoteLog: every experiment of ours can be planned, points measure what they say,
// and what cannot be is refused before anything runs.
#include "bench/log/remote_log_driver.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/config/document.h"
#include "platform/base/error.h"
#include "platform/sim/kernel/profile.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;
using ycsb::OperationKind;

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

harness::Declarations declarations() {
  static const RemoteLogDriver driver;
  const harness::Driver* const drivers[] = {&driver};
  return harness::declarations_of(drivers);
}

std::vector<Point> plan(const std::vector<std::string>& changes = {}) {
  std::vector<harness::Override> overrides;
  for (const std::string& change : changes) overrides.push_back(harness::parse_override(change));
  const harness::Experiment experiment = read_experiment(
      harness::Document::parse(std::string(kText), "x.toml", overrides), declarations());
  return plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), RemoteLogDriver(), 1);
}

std::string refusal(const std::vector<std::string>& changes) {
  try {
    plan(changes);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RemoteLogDriver, PlansTheExperiments) {
  for (const char* name : {"single", "ordered", "cells", "shm"}) {
    const auto experiment = harness::load_experiment(
        fmt::format("{}/experiments/remote-log-{}.toml", PERDURA_SOURCE_DIR, name), declarations());
    EXPECT_GE(
        plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), RemoteLogDriver(), 1)
            .size(),
        10U);
  }
}

TEST(RemoteLogDriver, MeasuresEachAppend) {
  for (const std::string& name : perdura::test::platform_names()) {
    for (const char* method : {"write-message", "write", "send-copy-flush", "ordered-write"}) {
      const Point point = plan({fmt::format("matrix.system=[\"{}\"]", method)}).front();
      const auto platform = perdura::test::make_platform(name, 2);
      const Measurement result = RemoteLogDriver().run(*platform, point);
      EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
      EXPECT_EQ(result.usage_error, "");
      EXPECT_EQ(result.operations(), 500U);
      const auto& appends = result.kinds.at(kind_of(OperationKind::insert));
      EXPECT_EQ(appends.latency.count(), 500U);
      EXPECT_EQ(appends.errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
      EXPECT_GT(result.writes().total().bytes_issued, 500U * 64);
    }
  }
}

// Messages of the responder's CPU make an append longer, and its flush even more.
TEST(RemoteLogDriver, TellsMethodsApart) {
  const auto mean = [](const char* method) {
    const Point point = plan({fmt::format("matrix.system=[\"{}\"]", method)}).front();
    const auto platform = perdura::test::make_platform("sim", 2);
    return RemoteLogDriver()
        .run(*platform, point)
        .kinds.at(kind_of(OperationKind::insert))
        .latency.mean();
  };
  EXPECT_LT(mean("write"), mean("send-copy"));
  EXPECT_LT(mean("send-copy"), mean("send-copy-flush"));
  EXPECT_LT(mean("write-message"), mean("ordered-write-message"));
}

TEST(RemoteLogDriver, SaysWhatTheDeviceLacks) {
  const Point point = plan({"matrix.system=[\"ordered-write-atomic\"]"}).front();
  const auto platform = perdura::test::make_platform("sim", 2);
  const Measurement result = RemoteLogDriver().run(*platform, point);
  EXPECT_NE(result.usage_error.find("method 'ordered-write-atomic' needs"), std::string::npos);
}

// What says all about a server; `but` leaves some out.
std::vector<std::string> responder(const std::vector<std::string>& but = {}) {
  std::vector<std::string> settings{"matrix.system=[\"paper-send\"]"};
  for (const char* setting : {"domain=\"mhp\"", "ddio=\"on\"", "receive_buffers=\"pm\"",
                              "transport=\"ib\"", "update=\"ordered\""}) {
    const bool left_out = std::any_of(but.begin(), but.end(), [&](const std::string& name) {
      return std::string_view(setting).starts_with(name);
    });
    if (!left_out) settings.push_back(fmt::format("workload.{}", setting));
  }
  return settings;
}

TEST(RemoteLogDriver, UsesThePapersMethodOfEachCell) {
  for (const char* transport : {"ib", "roce", "iwarp"}) {
    const bool iwarp = std::string_view(transport) == "iwarp";
    for (const methods::Configuration& configuration :
         methods::configurations(iwarp ? pmem::Transport::iwarp : pmem::Transport::infiniband)) {
      const bool in_pm = configuration.receive_buffers == pmem::Medium::pm;
      for (const auto update : methods::kUpdatesOfPaper) {
        for (const auto carrier : methods::kCarriers) {
          const systems::remote_log::LogOptions options = log_options(
              plan({fmt::format("matrix.system=[\"paper-{}\"]", to_string(carrier)),
                    fmt::format("workload.domain=\"{}\"", to_string(configuration.model.domain)),
                    fmt::format("workload.ddio=\"{}\"", configuration.model.ddio ? "on" : "off"),
                    fmt::format("workload.receive_buffers=\"{}\"", in_pm ? "pm" : "dram"),
                    fmt::format("workload.transport=\"{}\"", transport),
                    fmt::format("workload.update=\"{}\"", to_string(update))})
                  .front());
          EXPECT_EQ(options.method.name,
                    methods::method_of_paper(configuration, update, carrier).name)
              << to_string(configuration);
          EXPECT_EQ(options.receive_medium, configuration.receive_buffers);
        }
      }
    }
  }
}

std::string guarantee(const std::vector<std::string>& changes) {
  const auto level = guarantee_of(plan(changes).front());
  return level ? std::string(to_string(*level)) : "not said";
}

// All 72 cells are right, and so durable; a WRITE and its completion is right under WSP alone.
TEST(RemoteLogDriver, AnAppendIsDurableWhereItsMethodIsRight) {
  for (const std::string domain : {"dmp", "mhp", "wsp"}) {
    for (const std::string ddio : {"on", "off"}) {
      for (const std::string buffers : {"dram", "pm"}) {
        const std::vector<std::string> server{
            fmt::format("workload.domain=\"{}\"", domain),
            fmt::format("workload.ddio=\"{}\"", ddio),
            fmt::format("workload.receive_buffers=\"{}\"", buffers), "workload.transport=\"ib\""};
        const auto with = [&](const std::string& more) {
          auto changes = server;
          changes.push_back(more);
          return changes;
        };
        for (const std::string update : {"single", "ordered"}) {
          auto cells = with("matrix.system=[\"paper-write\", \"paper-write-imm\", \"paper-send\"]");
          cells.push_back(fmt::format("workload.update=\"{}\"", update));
          for (const Point& point : plan(cells)) {
            EXPECT_EQ(guarantee_of(point), services::GuaranteeLevel::durable) << point.label;
          }
        }
        EXPECT_EQ(guarantee(with("matrix.system=[\"write\"]")),
                  domain == "wsp" ? "durable" : "visible")
            << domain << ddio << buffers;
      }
    }
  }
}

TEST(RemoteLogDriver, AnAppendIsDurableOnlyIfItsMethodIsRightOnAllThatIsLeftOpen) {
  EXPECT_EQ(guarantee({}), "not said");
  EXPECT_EQ(guarantee({"workload.domain=\"dmp\""}), "durable") << "by a message, everywhere";
  const std::string write = "matrix.system=[\"write\"]";
  EXPECT_EQ(guarantee({write}), "not said");
  EXPECT_EQ(guarantee({write, "workload.ddio=\"on\""}), "visible") << "WSP is one of three";
  EXPECT_EQ(guarantee({write, "workload.domain=\"wsp\""}), "visible") << "not on iWARP";
  EXPECT_EQ(guarantee({write, "workload.domain=\"wsp\"", "workload.transport=\"ib\""}), "durable");
}

TEST(RemoteLogDriver, ReadsForFlushWhereTheDeviceHasNone) {
  const systems::remote_log::LogOptions options = log_options(plan(responder()).front());
  fabric::Capabilities device;
  device.flush = true;
  EXPECT_EQ(options.on(device).method_name(), "ordered-send-flush");
  EXPECT_TRUE(options.on(device).setup().method.uses(pmem::StepKind::flush_visibility));
  device.flush = false;
  EXPECT_EQ(options.on(device).method_name(), "ordered-send-flush (read)");
  EXPECT_FALSE(options.on(device).setup().method.uses(pmem::StepKind::flush_visibility));
  const systems::remote_log::LogOptions forced = log_options(
      plan({"matrix.system=[\"write-flush\"]", "systems.write-flush.read_for_flush=1"}).front());
  device.flush = true;
  EXPECT_EQ(forced.on(device).method_name(), "write-flush (read)");
  const auto platform = perdura::test::make_platform("sim", 2);
  const bool has_flush = sim::load_profile(perdura::test::profile_path("erda-connectx3")).nic.flush;
  EXPECT_EQ(RemoteLogDriver().run(*platform, plan(responder()).front()).method,
            has_flush ? "ordered-send-flush" : "ordered-send-flush (read)");
}

TEST(RemoteLogDriver, RefusesAServerThatIsNotSaid) {
  EXPECT_EQ(refusal(responder()), "no error");
  for (const std::string name : {"domain", "ddio", "receive_buffers", "transport", "update"}) {
    EXPECT_NE(refusal(responder({name}))
                  .find(fmt::format(": the method of paper-send depends on the server's "
                                    "configuration; add {} to [workload] or [matrix]",
                                    name)),
              std::string::npos)
        << name;
  }
  EXPECT_NE(refusal(responder({"domain", "update"})).find("add domain, update to"),
            std::string::npos);
}

TEST(RemoteLogDriver, RefusesWhatContradictsItself) {
  EXPECT_EQ(refusal({"workload.update=\"single\""}), "no error");
  EXPECT_NE(refusal({"workload.update=\"ordered\""})
                .find("method 'write-message' is for single updates; remove update = \"ordered\""),
            std::string::npos);
  EXPECT_EQ(
      refusal({"workload.receive_buffers=\"pm\"", "systems.write-message.receive_buffers_in_pm=1"}),
      "no error");
  EXPECT_NE(
      refusal({"workload.receive_buffers=\"pm\"", "systems.write-message.receive_buffers_in_pm=0"})
          .find("receive_buffers_in_pm = 0 of write-message contradicts receive_buffers = "
                "\"pm\"; keep one"),
      std::string::npos);
}

TEST(RemoteLogDriver, RefusesWhatIsNoLog) {
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_NE(
      refusal({"workload.workload=\"workloada\"", "workload.records=5"}).find("takes appends only"),
      std::string::npos);
  EXPECT_NE(refusal({"workload.records=5"}).find("takes appends only"), std::string::npos);
  for (const char* several : {"clients", "queue_depth", "server_threads", "client_nodes"}) {
    EXPECT_EQ(refusal({fmt::format("workload.{}=1", several)}), "no error");
    EXPECT_EQ(refusal({fmt::format("workload.{}=2", several)}),
              fmt::format("--set workload.{0}=2: {0} in [workload] must be 1, but is 2", several));
  }
  EXPECT_NE(refusal({"workload.load=\"fixed\""}).find("load in [workload] must be \"closed\""),
            std::string::npos);
  for (const std::string other :
       {"check_history=true", "duration_ms=5", "until_full=true", "ramp_ms=5", "steady_slope=0.1",
        "resizes=1", "persistence=\"correct\""}) {
    EXPECT_NE(
        refusal({"workload." + other})
            .find(fmt::format("unknown key '{}' in [workload]", other.substr(0, other.find('=')))),
        std::string::npos)
        << "a log has no such parameter";
  }
  EXPECT_NE(refusal({"timeline.interval_us=100"}).find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(refusal({"matrix.system=[\"erda\"]"}).find("unknown system 'erda'"), std::string::npos);
  EXPECT_NE(refusal({"systems.write-message.slot=3"})
                .find("unknown key 'slot' in [systems.write-message] (did you mean 'slots'?)"),
            std::string::npos);
  EXPECT_NE(refusal({"systems.write-message.slots=0"})
                .find("slots in [systems.write-message] must be a whole number from 1 to"),
            std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
