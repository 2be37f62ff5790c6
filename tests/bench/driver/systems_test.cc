// What a driver of a new service need not have of its own: its systems by name, what they count,
// what their threads throw, and what they guarantee on the server of a point.
#include "bench/driver/systems.h"

#include <gtest/gtest.h>

#include "bench/driver/crew.h"
#include "bench/driver/server.h"
#include "bench/server_parameters.h"
#include "systems/registry/registry.h"

namespace perdura::bench {
namespace {

// An entry as a service's table has it; of `kv`, the name stands in the entry itself.
struct Counters {
  services::SystemInfo info;
  std::uint32_t shards = 0;
};

constexpr Parameter kOwn[] = {{.name = "shards", .type = Count{1, 4}, .usual = 1}};

std::vector<Counters> counters() {
  std::vector<Counters> table(2);
  table[0].info.name = "plain";
  table[1].info.name = "sharded";
  table[1].info.parameters = kOwn;
  table[1].shards = 4;
  return table;
}

harness::Point point_of(std::string_view system, std::span<const Parameter> parameters = {}) {
  harness::Point point(parameters);
  point.settings.system = {std::string(system), "counters.toml:3"};
  return point;
}

TEST(DriverSystems, AreFoundByNameAndListedInAnError) {
  const std::vector<Counters> table = counters();
  const std::span<const Counters> all = table;
  EXPECT_EQ(system_of(point_of("sharded"), all).shards, 4U);
  const auto declared = declarations_of(all);
  ASSERT_EQ(declared.size(), 2U);
  EXPECT_EQ(declared[1].name, "sharded");
  EXPECT_EQ(declared[1].parameters.size(), 1U);
  EXPECT_EQ(system_of(point_of("erda"), systems::kv_systems()).name, "erda");
  try {
    system_of(point_of("shard"), all);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "counters.toml:3: unknown system 'shard' (did you mean 'sharded'?); known are: "
                 "plain, sharded");
  }
}

TEST(DriverSystems, WhatTheyCountIsAColumnAndASum) {
  constexpr services::Metric kMetrics[] = {{"laps", "laps", "Laps"},
                                           {"grabs_per_op", "grabs", "Grabs", "ratio"}};
  std::vector<schema::Column> columns(1);
  add_columns(kMetrics, columns);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[2].name, "grabs_per_op");
  EXPECT_EQ(columns[2].shown.unit, "ratio");
  harness::Measurement measurement;
  const std::vector<std::vector<double>> counted{{1, 10}, {}, {2, 30}};
  add_counted(kMetrics, counted, measurement);
  add_counted(kMetrics, std::span(counted).first(1), measurement);
  EXPECT_EQ(measurement.declared.at("laps"), 4);
  EXPECT_EQ(measurement.declared.at("grabs_per_op"), 50);
}

TEST(DriverSystems, AnImpossiblePointStopsTheSweepAndAFailedOneDoesNot) {
  harness::Measurement impossible;
  note(std::make_exception_ptr(UsageError("too few shards")), "server", impossible);
  EXPECT_EQ(impossible.usage_error, "too few shards");
  EXPECT_EQ(impossible.verdict, harness::Verdict::valid);
  harness::Measurement failed;
  note(std::make_exception_ptr(std::runtime_error("no memory")), "server", failed);
  EXPECT_EQ(failed.usage_error, "");
  EXPECT_EQ(failed.verdict, harness::Verdict::failed);
  EXPECT_EQ(failed.reason, "server: no memory");
}

// A driver that declares none of the server's parameters leaves all of them open.
TEST(DriverServer, IsAsThePointSaysElseAsTheTestbedIs) {
  constexpr Parameter kDeclared[] = {kDomain, kTransport};
  harness::Point point = point_of("erda", kDeclared);
  point.testbed = {"off", "ib"};
  point.settings.set("transport", "roce");
  EXPECT_EQ(stated_server(point.settings).ddio, "");
  EXPECT_EQ(known_server(point).ddio, "off");
  EXPECT_EQ(known_server(point).transport, "roce");
  EXPECT_EQ(known_server(point_of("erda")).domain, "");

  const services::SystemInfo erda = systems::find_system("erda").value().info;
  point.settings.set("domain", "mhp");
  EXPECT_EQ(guarantee_of(point, erda), services::GuaranteeLevel::ordered);
  point.settings.set("domain", "wsp");
  EXPECT_EQ(guarantee_of(point, erda), services::GuaranteeLevel::durable);
  EXPECT_NO_THROW(check_server(point, erda));
  point.settings.set("transport", "iwarp");
  try {
    check_server(point, erda);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "counters.toml:3: erda needs WRITE_WITH_IMM, which iWARP lacks");
  }
}

TEST(DriverServer, RefusesAMethodForASystemThatChoosesNone) {
  constexpr std::array<std::string_view, 2> kWays{"paper", "correct"};
  const Parameter kDeclared[] = {{.name = "persistence", .type = OneOf{kWays}}};
  harness::Point point = point_of("plain", kDeclared);
  const services::SystemInfo plain = counters()[0].info;
  point.settings.set("persistence", "paper");
  EXPECT_NO_THROW(check_server(point, plain));
  point.settings.set("persistence", "correct");
  EXPECT_THROW(check_server(point, plain), UsageError);
  EXPECT_FALSE(guarantee_of(point, plain)) << "nobody has explored it";
}

Time at_ns(int nanoseconds) { return Time(Nanoseconds(nanoseconds)); }

TEST(Crew, IsAtWorkFromTheLastBeginToTheFirstEnd) {
  Crew crew(2);
  crew.begin(at_ns(10));
  EXPECT_FALSE(crew.were_at_work(at_ns(20))) << "one is missing";
  crew.begin(at_ns(30));
  EXPECT_TRUE(crew.were_at_work(at_ns(40)));
  EXPECT_FALSE(crew.were_at_work(at_ns(30)));
  crew.end(at_ns(90));
  crew.end(at_ns(70));
  EXPECT_TRUE(crew.were_at_work(at_ns(70)));
  EXPECT_FALSE(crew.were_at_work(at_ns(71)));
  const measure::AtWork at_work = crew.at_work(0, 5);
  EXPECT_EQ(at_work.begin, at_ns(30));
  EXPECT_EQ(at_work.end, at_ns(70));
}

}  // namespace
}  // namespace perdura::bench
