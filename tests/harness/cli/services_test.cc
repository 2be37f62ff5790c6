// Commands that walk the tables of services and systems, and sweeps over a declared parameter.
#include <algorithm>
#include <fstream>

#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// The page is made with what was explored before, and says so.
TEST(Guarantees, BuiltInAreThoseOfTheTableThatIsKept) {
  const test::TemporaryFolder temporary;
  const std::string folder = (temporary.path() / "guarantees").string();
  const Outcome outcome = perdura("guarantees --built-in -o " + folder);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto text_of = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(text_of(folder + "/systems.csv"), text_of(PERDURA_SOURCE_DIR "/explore/explored.csv"));
  EXPECT_NE(text_of(folder + "/tables.toml").find("Not explored now"), std::string::npos);
}

// Other files in the folder may be somebody's; its own tables of before are written anew.
TEST(Guarantees, AreNotWrittenAmongOtherFiles) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path().string();
  const std::string command = "guarantees --built-in -o " + folder;
  ASSERT_EQ(perdura(command).code, 0);
  EXPECT_EQ(perdura(command).code, 0);
  std::filesystem::remove(temporary.path() / "tables.md");
  const Outcome refused = perdura(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.text, fmt::format("perdura: guarantees: --out {}: is not empty, and holds no "
                                      "tables of guarantees; name another folder\n",
                                      folder));
}

// One table, of this system alone; what cannot run says why, and the rest is there.
TEST(Guarantees, OfOneSystemSayWhereItCannotRun) {
  const test::TemporaryFolder temporary;
  const std::string folder = (temporary.path() / "guarantees").string();
  const Outcome outcome = shell(
      fmt::format("({} guarantees remote-log --json -o {} 2>/dev/null)", PERDURA_PROGRAM, folder));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto tables = Json::parse(outcome.text)["tables"];
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0]["name"], "systems");
  const auto& rows = tables[0]["rows"];
  ASSERT_EQ(rows.size(), 4U) << rows;
  const std::size_t columns = tables[0]["header"].size();
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), columns);
    for (std::size_t i = 1; i < columns; ++i) {
      const bool over_iwarp = tables[0]["header"][i].get<std::string>().ends_with(" iwarp");
      const bool refused = over_iwarp && row[0] == "remote-log, write_with_immediate";
      EXPECT_EQ(row[i], refused ? "refused: needs WRITE_WITH_IMM, which iWARP lacks" : "durable");
    }
  }
  const Outcome unknown = perdura("guarantees no-such-system");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.text.find("remote-log"), std::string::npos) << unknown.text;
}

TEST(CrashCommand, TakesParametersOfEachDeclaredType) {
  const std::string one_moment =
      "crash erda --domain wsp --ddio on --transport ib --images 1 --schedule slow-writer "
      "--points 100 --parameter ";
  for (const std::string good :
       {"persist_before_update=true", "persist_before_update=0", "segment_bytes=256"}) {
    const Outcome outcome = perdura(one_moment + good);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
  const std::pair<const char*, const char*> bad[] = {
      {"persist_before_update", "perdura: crash: --parameter persist_before_update: give NAME="},
      {"persist_before_update=maybe",
       "perdura: crash: --parameter persist_before_update=maybe: persist_before_update must be "
       "true or false"},
      {"segment_bytes=1.5",
       "perdura: crash: --parameter segment_bytes=1.5: segment_bytes must be "},
      {"segment_byte=1",
       "perdura: crash: --parameter segment_byte=1: unknown parameter 'segment_byte' (did you "
       "mean 'segment_bytes'?)"},
  };
  for (const auto& [parameter, beginning] : bad) {
    const Outcome outcome = perdura(one_moment + parameter);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_TRUE(outcome.text.starts_with(beginning)) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }
}

TEST(CrashCommand, RefusesServersOnWhichTheSystemCannotRun) {
  const Outcome none = perdura("crash erda --transport iwarp");
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.text, "perdura: crash: erda needs WRITE_WITH_IMM, which iWARP lacks\n");
  const Outcome some =
      shell(fmt::format("({} crash erda --domain wsp --ddio on --images 1 --schedule slow-writer "
                        "--points 100 --json 2>/dev/null)",
                        PERDURA_PROGRAM));
  EXPECT_EQ(some.code, 0) << some.text;
  const auto results = Json::parse(some.text);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0]["guarantee"], "durable");
  EXPECT_EQ(results[1]["transport"], "iwarp");
  EXPECT_EQ(results[1]["refused"], "needs WRITE_WITH_IMM, which iWARP lacks");
}

const std::string kOverServers =
    "erda-latency --set workload.operations=300 --set workload.warmup=0 "
    "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[16]' "
    "--set 'matrix.system=[\"erda\"]' --set 'matrix.servers=[1, 3]' ";

TEST(Plan, OverServersHasTheNodesOfEachPoint) {
  const Outcome outcome = perdura("plan --json " + kOverServers);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto points = Json::parse(outcome.text)["points"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0]["nodes"], 2);
  EXPECT_EQ(points[1]["nodes"], 4);
  EXPECT_EQ(points[0]["label"], "servers=1 erda");
  EXPECT_EQ(points[1]["label"], "servers=3 erda");
  const Outcome text = perdura("plan " + kOverServers);
  EXPECT_NE(text.text.find("\nnodes     4: "), std::string::npos) << text.text;
  EXPECT_NE(text.text.find("\n          fewest 2: "), std::string::npos) << text.text;
}

// Legends use the parameter's noun, the page lists it among the settings, and a figure without
// points is announced.
TEST(Report, NamesTheValuesOfADeclaredParameter) {
  const test::TemporaryFolder temporary;
  const fs::path experiment = temporary.path() / "servers.toml";
  std::ofstream(experiment) << R"(name = "servers"
description = "servers"
platform = "sim"
profile = "erda-connectx3"

[workload]
workload = "create-only"
records = 0
operations = 200
key_size = 16
value_size = 16

[matrix]
servers = [1, 2]
system = ["erda"]

[[figure]]
id = "by-servers"
title = "Latency"
plot = "latency-over-value-size"
x = "value_size"
y = "latency_mean_us"
series = "servers"

[[figure]]
id = "of-reads"
title = "Latency of reads"
plot = "latency-over-value-size"
x = "value_size"
y = "latency_mean_us"
series = "servers"
where = { operation = "read" }
)";
  const fs::path folder = temporary.path() / "results";
  const Outcome run = perdura(fmt::format("run {} --out {}", experiment.string(), folder.string()));
  ASSERT_EQ(run.code, 0) << run.text;
  const Outcome report = perdura("report " + folder.string());
  ASSERT_EQ(report.code, 0) << report.text;
  EXPECT_NE(
      report.text.find("note: figure of-reads of results is empty: no row has operation = read; "
                       "there is: all, the only row of points with one kind of operation\n"),
      std::string::npos)
      << report.text;
  const std::string csv = read(folder / "report" / "figures" / "by-servers.csv");
  EXPECT_NE(csv.find("1 server,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("2 servers,"), std::string::npos) << csv;
  const std::string page = read(folder / "report" / "index.html");
  EXPECT_NE(page.find("servers"), std::string::npos);

  const Outcome two = perdura(fmt::format("report {} {}", folder.string(), folder.string()));
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.text.find("give one folder; to draw several on one page, put them into a folder"),
            std::string::npos)
      << two.text;
}

}  // namespace
}  // namespace perdura
