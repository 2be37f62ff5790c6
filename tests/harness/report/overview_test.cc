// The overview that a page begins with: its sentences follow from the numbers.
#include "tests/harness/report/fixture.h"

namespace perdura::report {
namespace {

class OverviewTest : public ReportTest {
 protected:
  std::string overview_of(const std::vector<Cells>& rows, const std::string& toml) {
    result("run", rows, toml);
    ReportOptions chosen = options();
    chosen.claims = root() / "claims.csv";
    const auto written = write_report(chosen);
    EXPECT_TRUE(written) << written.error().message;
    const std::string html = read("report/index.html");
    return html.substr(0, html.find("<main>"));
  }
};

TEST_F(OverviewTest, ComesBeforeAnyFigureAndSaysWhatWasRun) {
  auto rows = latency_rows();
  rows.push_back(rows.front());
  rows.back()["operation"] = "read";  // of a point that is counted already
  rows[1]["verdict"] = "failed";
  write("claims.csv", claims_csv({}));
  const std::string head = overview_of(rows, latency_figure("14"));
  EXPECT_EQ(count(head, "<svg"), 0U);
  EXPECT_EQ(count(head, "run (6 points, <a href=\"#not-drawn\">1 not valid</a>)"), 1U) << head;
  EXPECT_EQ(count(head, "claims"), 0U) << "no paper, no claims";
}

TEST_F(OverviewTest, SetsThePaperBesideUsAndCountsTheClaims) {
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "50"),
                                  number_claim("14", "workloadc", "redo-logging", "91"),
                                  number_claim("15", "workloadc", "erda", "1")}));
  const std::string head = overview_of(latency_rows(), latency_figure("14", "paper = \"p\""));
  EXPECT_EQ(
      count(
          head,
          "On the model bench, average latency as a ratio of Erda to Redo Logging: 0.67 for YCSB-C "
          "(paper: 0.55)."),
      1U)
      << head;
  EXPECT_EQ(count(head, "3 claims: <b>of 2 predictions, 1 holds and 1 differs; 1 not measured</b>"),
            1U)
      << head;
}

TEST_F(OverviewTest, AMeasuredRunIsNoModelAndHasNoPaperBesideIt) {
  auto rows = latency_rows();
  for (Cells& row : rows) row = measured(row);
  write("claims.csv", claims_csv({}));
  EXPECT_EQ(count(overview_of(rows, latency_figure("14")),
                  "Measured on this host (shm), average latency as a ratio of Erda to Redo "
                  "Logging: 0.67 for "
                  "YCSB-C."),
            1U);
}

TEST_F(OverviewTest, SaysWhatIsKept) {
  auto rows = latency_rows();
  for (Cells& row : rows) row["guarantee"] = row["system"] == "erda" ? "none" : "durable";
  write("claims.csv", claims_csv({}));
  write("guarantees/tables.toml",
        "[[table]]\nname = \"systems\"\ntitle = \"S\"\ncaption = \"C\"\nverdicts = true\n");
  write("guarantees/systems.csv",
        "system,dmp,mhp,wsp\nerda,none,durable-writes,durable\n\"erda, "
        "mended\",durable,durable,durable\n"
        "redo-logging,durable,durable,durable\n");
  const std::string titled = "[systems.redo-logging]\ntitle = \"REDO\"\n";
  const std::string head = overview_of(rows, titled + latency_figure("14"));
  EXPECT_EQ(
      count(head,
            "is not even atomic with Erda and durable with REDO and Read After Write on every "
            "server of these runs."),
      1U)
      << head;
  EXPECT_EQ(
      count(head,
            "No acknowledged write is lost when the server&#39;s power fails, as published, by "
            "Erda on 2 of 3 kinds of servers and REDO on 3 of 3 kinds of servers."),
      1U)
      << head;
}

// What depends on the server is said of the server: one system under several levels with nothing
// beside them says nothing.
TEST_F(OverviewTest, SaysOnWhichServersASystemKeepsWhat) {
  const auto row = [](const char* system, const char* domain, const char* ddio,
                      const char* guarantee) {
    return Cells{{"system", system},  {"domain", domain},       {"ddio", ddio},
                 {"transport", "ib"}, {"persistence", "paper"}, {"guarantee", guarantee}};
  };
  write("claims.csv", claims_csv({}));
  const std::string head = overview_of(
      {row("erda", "dmp", "on", "none"), row("erda", "dmp", "off", "ordered"),
       row("erda", "mhp", "on", "ordered"), row("erda", "mhp", "off", "ordered"),
       row("redo-logging", "dmp", "on", "durable"), row("redo-logging", "dmp", "off", "durable"),
       row("redo-logging", "mhp", "on", "durable"), row("redo-logging", "mhp", "off", "durable")},
      "[[figure]]\nid = \"d\"\ntitle = \"D\"\nplot = \"latency-over-workload\"\n"
      "x = [\"domain\", \"ddio\"]\ny = \"latency_mean_us\"\n");
  EXPECT_EQ(count(head,
                  "is durable with Redo Logging on every server of these runs. With Erda it is not "
                  "even atomic on DMP with DDIO; ordered on DMP without DDIO and MHP."),
            1U)
      << head;
}

// Two points of three systems, and one that a system lacks.
std::vector<Cells> rows_of_leads() {
  const auto row = [](const char* system, const char* size, const char* p99, const char* cpu) {
    return Cells{{"system", system},
                 {"value_size", size},
                 {"latency_p99_us", p99},
                 {"server_cpu_us_per_op", cpu}};
  };
  return {row("erda", "16", "10", "0"),
          row("erda", "64", "30", "2"),
          row("erda", "256", "1", "9"),
          row("redo-logging", "16", "15", "3"),
          row("redo-logging", "64", "20", "4"),
          row("redo-logging", "256", "2", "9"),
          row("read-after-write", "16", "40", "5"),
          row("read-after-write", "64", "40", "5")};
}

TEST_F(OverviewTest, TellsWhoHasTheLeastAtHowManyPointsAndByHowMuch) {
  write("claims.csv", claims_csv({}));
  const std::string head = overview_of(rows_of_leads(), latency_figure("14"));
  EXPECT_EQ(count(head,
                  "<li>On the model bench, lowest 99th percentile of latency: Erda at 1 of the 2 "
                  "points that 3 systems share (the next one has 1.50 times as much) and Redo "
                  "Logging at 1 (the next one has 1.50 times as much).</li>"),
            1U)
      << head;
  EXPECT_EQ(
      count(head,
            "<li>On the model bench, lowest server CPU cost: Erda at 2 of the 2 points that 3 "
            "systems share.</li>"),
      1U)
      << head;
  EXPECT_EQ(count(head, "NVM bytes"), 0U) << "not measured";
}

TEST_F(OverviewTest, TellsNothingOfASingleSystemOrOfWhatIsEqual) {
  write("claims.csv", claims_csv({}));
  auto rows = rows_of_leads();
  rows.resize(3);
  EXPECT_EQ(count(overview_of(rows, latency_figure("14")), "lowest"), 0U);
  auto equal = rows_of_leads();
  for (Cells& row : equal) {
    for (const char* column : {"latency_p99_us", "server_cpu_us_per_op"}) {
      row.insert_or_assign(column, std::string(1, '7'));
    }
  }
  EXPECT_EQ(count(overview_of(equal, latency_figure("14")), "lowest"), 0U);
}

// 1.00 times as much is no lead, nor is what the repetitions do not tell apart.
TEST_F(OverviewTest, EqualsHaveNoLeader) {
  const auto row = [](const char* system, const char* repetition, const char* p99) {
    return Cells{{"system", system}, {"repetition", repetition}, {"latency_p99_us", p99}};
  };
  write("claims.csv", claims_csv({}));
  const std::string none = overview_of({row("erda", "0", "10"), row("redo-logging", "0", "10.04")},
                                       latency_figure("14"));
  EXPECT_EQ(count(none, "lowest"), 0U) << none;
  const std::string noise =
      overview_of({row("erda", "0", "10"), row("erda", "1", "14"), row("redo-logging", "0", "11"),
                   row("redo-logging", "1", "15")},
                  latency_figure("14"));
  EXPECT_EQ(count(noise, "lowest"), 0U) << noise;
  const std::string lead =
      overview_of({row("erda", "0", "10"), row("redo-logging", "0", "10.1")}, latency_figure("14"));
  EXPECT_EQ(count(lead, "lowest 99th percentile of latency: Erda"), 1U) << lead;
}

// What is not said of a leader is said to be nobody's.
TEST_F(OverviewTest, SaysAtHowManyPointsNobodyLeads) {
  const auto row = [](const char* system, const char* size, const char* p99) {
    return Cells{{"system", system}, {"value_size", size}, {"latency_p99_us", p99}};
  };
  write("claims.csv", claims_csv({}));
  const std::string head = overview_of(
      {row("erda", "16", "10"), row("redo-logging", "16", "15"), row("erda", "64", "20"),
       row("redo-logging", "64", "20"), row("erda", "256", "30"), row("redo-logging", "256", "30")},
      latency_figure("14"));
  EXPECT_EQ(count(head,
                  "lowest 99th percentile of latency: Erda at 1 of the 3 points that 2 systems "
                  "share (the next one has 1.50 times as much); at 2 none is lowest alone."),
            1U)
      << head;
}

// However many sentences one run gives, the next one has its own.
TEST_F(OverviewTest, SaysSomethingOfEachRun) {
  write("claims.csv", claims_csv({}));
  std::string figures;
  for (int i = 0; i < 9; ++i) {
    const std::string column =
        std::vector<std::string>{"latency_mean_us", "latency_p50_us",   "latency_p90_us",
                                 "latency_p99_us",  "latency_max_us",   "latency_min_us",
                                 "latency_p999_us", "latency_p9999_us", "server_cpu_us_per_op"}[i];
    figures += "[[figure]]\nid = \"f" + std::to_string(i) +
               "\"\ntitle = \"F\"\nplot = \"latency-over-value-size\"\nx = \"value_size\"\ny = \"" +
               column + "\"\n";
  }
  std::vector<Cells> rows = latency_rows();
  for (Cells& row : rows) {
    for (const char* column :
         {"latency_p50_us", "latency_p90_us", "latency_p99_us", "latency_max_us", "latency_min_us",
          "latency_p999_us", "latency_p9999_us", "server_cpu_us_per_op"}) {
      row[column] = row["latency_mean_us"];
    }
  }
  result("a", rows, figures);
  for (Cells& row : rows) {
    if (row["system"] == "erda") row["system"] = "p-farm-kv";
  }
  const std::string head = overview_of(rows, latency_figure("after-those"));
  EXPECT_EQ(count(head, "average latency as a ratio of Redo Logging to Read After Write"), 1U)
      << head;
}

TEST_F(OverviewTest, MakesNoSentenceOfARunThatHasNotEndedAndSaysSo) {
  auto rows = latency_rows();
  for (Cells& row : rows) {
    row["guarantee"] = row["system"] == "erda" ? "atomic" : "durable";
    row["throughput_ops_s"] = "1000";
    row["nvm_field_bytes_per_op"] = "16";
  }
  rows[1]["verdict"] = "failed";
  const std::string toml =
      latency_figure("14") + latency_figure("load", "at = \"throughput_ops_s\"") +
      "[[table]]\nid = \"1\"\ntitle = \"Averages\"\nkind = \"average\"\nx = \"value_size\"\n"
      "y = \"latency_mean_us\"\n"
      "[[table]]\nid = \"2\"\ntitle = \"Formulas\"\nkind = \"formula\"\npaper = \"p\"\n"
      "y = \"nvm_field_bytes_per_op\"\n";
  Cells formula = number_claim("Table 2", "workloadc", "erda", "value");
  formula["unit"] = "bytes";
  formula["tolerance"] = "0";
  write("claims.csv", claims_csv({formula}));
  EXPECT_EQ(count(overview_of(rows, toml), "What the results say"), 1U);
  interrupt("run");
  ReportOptions chosen = options();
  chosen.claims = root() / "claims.csv";
  ASSERT_TRUE(write_report(chosen));
  const std::string html = read("report/index.html");
  const std::string head = html.substr(0, html.find("<main>"));
  EXPECT_EQ(count(head, "What the results say"), 0U) << head;
  EXPECT_EQ(count(head, "run (unfinished: 23 of 60 points, <a href=\"#not-drawn\">1 not"), 1U)
      << head;
  EXPECT_EQ(count(html, "<p><b>unfinished: 23 of 60 points</b></p>"), 4U) << "two of each";
  EXPECT_EQ(count(html, "Averages, as ratios"), 0U);

  result("run", {}, toml);
  interrupt("run", "running");
  ASSERT_TRUE(write_report(chosen));
  EXPECT_EQ(count(read("report/index.html"), "<li>run (unfinished: 23 of 60 points)</li>"), 1U);
}

TEST_F(OverviewTest, SaysHowFarEachSystemComesUnderRisingLoad) {
  const auto row = [](const char* system, const char* load, const char* throughput) {
    return Cells{{"system", system},
                 {"offered_load", load},
                 {"throughput_ops_s", throughput},
                 {"response_p99_us", "9"}};
  };
  write("claims.csv", claims_csv({}));
  const std::string head =
      overview_of({row("erda", "1000", "900"), row("erda", "5000", "3000"),
                   row("redo-logging", "1000", "800"), row("redo-logging", "5000", "700")},
                  "[[figure]]\nid = \"load\"\ntitle = \"Mix\"\nplot = \"latency-over-throughput\"\n"
                  "x = \"offered_load\"\nat = \"throughput_ops_s\"\ny = \"response_p99_us\"\n");
  EXPECT_EQ(count(head,
                  "the highest throughput under rising load is 3.00 kop/s with Erda and "
                  "0.80 kop/s with Redo Logging (Mix)."),
            1U)
      << head;
}

}  // namespace
}  // namespace perdura::report
