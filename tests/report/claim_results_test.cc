// What becomes of the claims in a run.
#include "report/claim_results.h"

#include "platform/base/json.h"
#include "tests/harness/declarations.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

class ClaimResultsTest : public ReportTest {
 protected:
  /// Each as "id: verdict, measured, deviation".
  std::vector<std::string> results() {
    folders_ = std::move(*read_result_folders(root()));
    auto papers =
        read_papers(root() / "claims.csv", root(), papers_of(folders_), OtherPapers::read_too);
    EXPECT_TRUE(papers) << papers.error().message;
    papers_ = std::move(*papers);
    const auto contents = gather(folders_, papers_);
    EXPECT_TRUE(contents) << contents.error().message;
    std::vector<std::string> lines;
    for (const ClaimResult& result : measure_claims(*contents, folders_, papers_)) {
      lines.push_back(result.claim->id + ": " + std::string(to_string(result.outcome)) + ", " +
                      result.measured + ", " + shown_deviation(result));
    }
    return lines;
  }
  using Lines = std::vector<std::string>;

  std::vector<ResultFolder> folders_;
  Papers papers_;
};

TEST_F(ClaimResultsTest, ANumberIsTheAverageThatItsFigureShows) {
  result("run", latency_rows(), latency_figure("14", "paper = \"p\""));
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "61"),
                                  number_claim("14", "workloadc", "redo-logging", "95"),
                                  number_claim("14", "workloadc", "read-after-write", "100"),
                                  number_claim("14", "workloada", "erda", "61"),
                                  number_claim("15", "workloadc", "erda", "61")}));
  EXPECT_EQ(results(), (Lines{"c1: holds, 61.00, 0 %", "c2: holds, 91.00, -4.2 %",
                              "c3: differs, 121.0, +21.0 %", "c4: not measured, run test, –",
                              "c5: not measured, run test, –"}));
}

// A partial average is no average: what a run that has not ended measures is said to be open, and
// so is what it has not come to.
TEST_F(ClaimResultsTest, ARunThatHasNotEndedMeasuresNothing) {
  result("run", latency_rows(), latency_figure("14", "paper = \"p\""));
  Cells other = number_claim("15", "workloadc", "erda", "61");
  other["experiment"] = "mine";
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "61"),
                                  order_claim("system=erda", "system=redo-logging"),
                                  number_claim("15", "workloadc", "erda", "61"), other}));
  for (const auto& [status, word] : {std::pair("interrupted", "interrupted"),
                                     std::pair("running", "unfinished"),
                                     {"failed", "failed"}}) {
    interrupt("run", status);
    const std::string words = std::string(": not measured, ") + word + ", 23 of 60 points, –";
    EXPECT_EQ(results(),
              (Lines{"c1" + words, "c2" + words, "c3" + words, "c4: not measured, run mine, –"}));
  }
  interrupt("run", "complete");
  EXPECT_EQ(results()[0], "c1: holds, 61.00, 0 %");
}

TEST_F(ClaimResultsTest, OnlyTheExperimentThatIsNamedMeasuresAClaim) {
  result("run", latency_rows(), latency_figure("14", "paper = \"p\""));
  Cells other = number_claim("14", "workloadc", "erda", "61");
  other["experiment"] = "mine|yours";
  Cells order = order_claim("system=erda", "system=redo-logging");
  order["experiment"] = "mine";
  write("claims.csv", claims_csv({other, order}));
  EXPECT_EQ(results(),
            (Lines{"c1: not measured, run mine or yours, –", "c2: not measured, run mine, –"}));
}

TEST_F(ClaimResultsTest, AnotherMachineSaysNothingOfAnExactNumber) {
  auto rows = latency_rows();
  for (Cells& row : rows) row = measured(row);
  result("run", rows, latency_figure("14", "paper = \"p\""));
  Cells ratio = order_claim("system=erda", "system=redo-logging");
  ratio.insert(
      {{"value", "1.5"}, {"unit", "ratio"}, {"tolerance", "1"}, {"tolerance_reason", "r"}});
  ratio["kind"] = "ratio";
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "61"), ratio,
                                  order_claim("system=erda", "system=redo-logging")}));
  EXPECT_EQ(results(), (Lines{"c1: not measured, run test, –", "c2: holds, 1.49, -0.5 %",
                              "c3: holds, in 2 of 2 pairs, ratio 1.48 to 1.50, –"}));
}

TEST_F(ClaimResultsTest, ARatioMayBeAReductionInPercent) {
  result("run", latency_rows(), latency_figure("14"));
  Cells reduction = order_claim("system=erda", "system=read-after-write");
  reduction.insert(
      {{"value", "60"}, {"unit", "percent"}, {"tolerance", "10"}, {"tolerance_reason", "r"}});
  reduction["kind"] = "ratio";
  write("claims.csv", claims_csv({reduction}));
  EXPECT_EQ(results(), Lines{"c1: differs, 49.59 %, -17.3 %"});
}

TEST_F(ClaimResultsTest, NothingAndInfinityAreMetExactlyOrNotAtAll) {
  const auto cost = [](const std::string& system, const std::string& cpu) {
    return Cells{{"system", system}, {"server_cpu_us_per_op", cpu}};
  };
  const auto claim = [](const std::string& system, const std::string& value) {
    Cells cells = number_claim("", "", "", value);
    cells["y"] = "server_cpu_us_per_op";
    cells["where"] = "system=" + system;
    return cells;
  };
  result("run", {cost("a", "0"), cost("b", "2")}, "");
  write("claims.csv", claims_csv({claim("a", "0"), claim("b", "0"), claim("b", "inf"),
                                  claim("a", "5"), claim("c", "1")}));
  EXPECT_EQ(results(), (Lines{"c1: holds, 0, 0 %", "c2: differs, 2.00, –", "c3: differs, 2.00, –",
                              "c4: differs, 0, -100.0 %", "c5: not measured, run test, –"}));
}

TEST_F(ClaimResultsTest, AFormulaHoldsIfItDoesForAllSizes) {
  const auto row = [](const char* system, const char* size, const char* bytes) {
    return Cells{{"system", system}, {"value_size", size}, {"nvm_field_bytes_per_op", bytes}};
  };
  result("run", {row("erda", "16", "41"), row("erda", "64", "89"), row("redo-logging", "16", "40")},
         "[[table]]\nid = \"1\"\npaper = \"p\"\ntitle = \"Writes\"\nkind = \"formula\"\n"
         "y = \"nvm_field_bytes_per_op\"\nwhere = { operation = \"all\" }\n");
  Cells erda = number_claim("Table 1", "workloadc", "erda", "9 + N");
  Cells redo = number_claim("Table 1", "workloadc", "redo-logging", "18 + N");
  erda["tolerance"] = redo["tolerance"] = "0";
  write("claims.csv", claims_csv({erda, redo}));
  EXPECT_EQ(results(), (Lines{"c1: holds, equal for 2 of 2 sizes, 0 %",
                              "c2: differs, equal for 0 of 1 sizes, -20.0 %"}));
}

TEST_F(ClaimResultsTest, EachRunMeasuresForItself) {
  result("one", latency_rows(), latency_figure("14"));
  result("two", latency_rows(), latency_figure("14"));
  write("claims.csv", claims_csv({order_claim("system=redo-logging", "system=erda")}));
  EXPECT_EQ(results(), (Lines{"c1: differs, in 0 of 2 pairs, ratio 0.67, –",
                              "c1: differs, in 0 of 2 pairs, ratio 0.67, –"}));
}

// "At most 1.1" is not 1.1 give or take something: what is below holds, however far.
TEST_F(ClaimResultsTest, ABoundHoldsInEachRow) {
  result("run", latency_rows(), latency_figure("14"));  // 60 to 122
  const auto bound = [](const std::string& kind, const std::string& value,
                        const std::string& system) {
    Cells cells = number_claim("", "", "", value);
    cells["kind"] = kind;
    cells["tolerance"] = "0";
    cells["y"] = "latency_mean_us";
    cells["where"] = "system=" + system;
    return cells;
  };
  Cells slack = bound("at most", "61", "erda");
  slack["tolerance"] = "2";
  Cells pairs = bound("at least", "1.4", "erda|redo-logging");
  pairs["where"] = "";
  pairs["lower"] = "system=erda";
  pairs["higher"] = "system=redo-logging";
  write("claims.csv", claims_csv({bound("at most", "1000", "erda"), bound("at most", "61", "erda"),
                                  slack, bound("at least", "60", "erda|redo-logging"),
                                  bound("at least", "61", "erda"), pairs}));
  EXPECT_EQ(results(),
            (Lines{"c1: holds, 60.00 to 62.00, –", "c2: differs, 60.00 to 62.00, +1.6 %",
                   "c3: holds, 60.00 to 62.00, –", "c4: holds, 60.00 to 92.00, –",
                   "c5: differs, 60.00 to 62.00, -1.6 %", "c6: holds, 1.48 to 1.50, –"}));
  EXPECT_EQ(shown_reported(papers_.at("p").claims[0]), "at most 1000 µs");
}

TEST_F(ClaimResultsTest, WhatNothingMeasuresHasItsReason) {
  result("run", latency_rows(), latency_figure("14"));
  write("claims.csv", claims_csv({not_covered_claim("the number is missing"),
                                  order_claim("system=erda", "system=redo-logging")}));
  EXPECT_EQ(results(), (Lines{"c1: not covered, the number is missing, –",
                              "c2: holds, in 2 of 2 pairs, ratio 1.48 to 1.50, –"}));
  EXPECT_EQ(shown_reported(papers_.at("p").claims[0]), "");
  EXPECT_EQ(shown_reported(papers_.at("p").claims[1]), "this order");
}

TEST_F(ClaimResultsTest, PredictionsAreCountedApart) {
  result("run", latency_rows(), latency_figure("14", "paper = \"p\""));
  std::vector<Cells> claims{number_claim("14", "workloadc", "erda", "61"),
                            number_claim("14", "workloadc", "redo-logging", "91"),
                            number_claim("14", "workloadc", "read-after-write", "1"),
                            number_claim("15", "workloadc", "erda", "61"),
                            not_covered_claim("no number")};
  claims[1]["basis"] = "fitted";
  claims[2]["basis"] = "input";
  write("claims.csv", claims_csv(claims));
  results();
  const auto contents = gather(folders_, papers_);
  const ClaimCounts counts = count_claims(measure_claims(*contents, folders_, papers_));
  EXPECT_EQ(
      counts.words(),
      "of 1 prediction, 1 holds and 0 differ; of 1 fitted statement, 1 holds and 0 differ; of 1 "
      "input, 0 hold and 1 differs; 1 not measured; 1 not covered");
}

// The manifest of a folder whose driver declares columns; else an empty one.
std::string manifest_of(const std::string& name) {
  static const bench::MemoryDriver memory(systems::memory_systems());
  static const bench::FsDriver fs(systems::fs_systems(), systems::memory_systems());
  static const bench::ObjectsDriver pools(systems::object_systems());
  static const bench::TranslationDriver translation;
  static const bench::RemoteFileDriver remote_file;
  static const bench::FanOutDriver fan_out;
  static const bench::ConnectionsDriver connections;
  const harness::Experiment experiment =
      harness::load_experiment(PERDURA_EXPERIMENTS "/" + name + ".toml", test::declarations());
  for (const harness::Driver* const driver : std::initializer_list<const harness::Driver*>{
           &memory, &fs, &pools, &translation, &remote_file, &fan_out, &connections}) {
    if (driver->name() != experiment.driver.text) continue;
    const auto points = plan_points(experiment, harness::Locations::standard(), *driver, 0);
    return Json{{"columns", schema_of(*driver, points).to_json()}}.dump();
  }
  return "{}";
}

// The committed results of all experiments that measure a claim.
class CommittedResults : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    for (const std::string name :
         {"erda-latency",        "erda-throughput",   "erda-cpu",
          "erda-nvm-writes",     "erda-cleaning",     "remote-log-cells",
          "hash-ycsb",           "hash-load-factor",  "hash-added-sbuckets",
          "hash-pm-writes",      "mojim-msync",       "mojim-msync-dram",
          "mojim-msync-tiers",   "mojim-sync-size",   "mojim-threads",
          "mojim-thresholds",    "mojim-recovery",    "mojim-mirror-lost",
          "mojim-filebench",     "mojim-hash",        "fs-micro",
          "fs-threads",          "fs-filebench",      "fs-webserver",
          "mcas-shards",         "mcas-value-size",   "mcas-clients",
          "mcas-direct",         "mcas-ado",          "orion-names",
          "orion-data",          "orion-messages",    "orion-writes",
          "orion-filebench",     "orion-webserver",   "orion-sharing",
          "orion-octopus",       "filemr-log",        "filemr-translations",
          "filemr-registration", "filemr-fragmented", "filemr-files",
          "filemr-connections",  "filemr-multicast"}) {
      std::filesystem::create_directories(root() / name);
      std::filesystem::copy(PERDURA_REFERENCE "/" + name + "/points.csv",
                            root() / name / "points.csv");
      std::filesystem::copy(PERDURA_EXPERIMENTS "/" + name + ".toml",
                            root() / name / "experiment.toml");
      write(name + "/manifest.json", manifest_of(name));
    }
    for (const std::string name : {"probe", "probe-orion", "probe-translations"}) {
      std::filesystem::create_directories(root() / name);
      std::filesystem::copy(PERDURA_REFERENCE "/" + name + "/probes.csv",
                            root() / name / "probes.csv");
      write(name + "/manifest.json", "{}");
    }
  }
};

TEST_F(CommittedResults, MeasureEveryClaimAndExplainEachThatDiffers) {
  const auto folders = read_result_folders(root());
  ASSERT_TRUE(folders) << folders.error().message;
  const auto papers =
      read_papers(PERDURA_CLAIMS, PERDURA_NOTES, papers_of(*folders), OtherPapers::read_too);
  ASSERT_TRUE(papers) << papers.error().message;
  const auto contents = gather(*folders, *papers);
  ASSERT_TRUE(contents) << contents.error().message;
  const auto results = measure_claims(*contents, *folders, *papers);
  for (const ClaimResult& result : results) {
    // Its methods are in no figure of the paper, so no results of theirs are committed.
    if (result.claim->experiments == std::vector<std::string>{"remote-log-ordered"}) continue;
    EXPECT_NE(result.outcome, ClaimResult::Outcome::not_measured) << result.claim->id;
    if (result.outcome != ClaimResult::Outcome::differs) continue;
    ASSERT_FALSE(result.notes.empty()) << result.claim->id << " differs without a reason";
    for (const std::size_t note : result.notes) {
      EXPECT_NE(result.paper->notes[note].run, "")
          << result.claim->id << ": nothing could refute the reason";
    }
  }
  const ClaimCounts counts = count_claims(results);
  EXPECT_EQ(counts.not_covered, 52U);
  EXPECT_GT(counts.predictions.size(), 2 * counts.fitted.size()) << counts.words();
}

}  // namespace
}  // namespace perdura::report
