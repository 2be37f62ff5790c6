// What the page says before its figures: what was run, and how the claims fare.
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

class OverviewTest : public ReportTest {
 protected:
  std::string overview_of(const std::vector<Cells>& rows, const std::string& toml) {
    result("run", rows, toml);
    return overview();
  }
  std::string overview() {
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

TEST_F(OverviewTest, CountsTheClaims) {
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "50"),
                                  number_claim("14", "workloadc", "redo-logging", "91"),
                                  number_claim("15", "workloadc", "erda", "1")}));
  const std::string head = overview_of(latency_rows(), latency_figure("14", "paper = \"p\""));
  EXPECT_EQ(count(head,
                  "3 claims of papers: <b>of 2 predictions, 1 holds and 1 differs; 1 not "
                  "measured</b>"),
            1U)
      << head;
}

// An average over what a sweep has so far is none over what it was to measure.
TEST_F(OverviewTest, SaysThatARunHasNotEndedAndMakesNoSummaryOfIt) {
  auto rows = latency_rows();
  for (Cells& row : rows) {
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
  EXPECT_EQ(count(overview_of(rows, toml), "<h2 id=\"designs\">"), 1U);
  interrupt("run");
  const std::string head = overview();
  EXPECT_EQ(count(head, "<h2 id=\"designs\">"), 0U) << head;
  EXPECT_EQ(count(head, "run (unfinished: 23 of 60 points, <a href=\"#not-drawn\">1 not"), 1U)
      << head;
  const std::string html = read("report/index.html");
  EXPECT_EQ(count(html, "<p><b>unfinished: 23 of 60 points</b></p>"), 4U) << "two of each";
  EXPECT_EQ(count(html, "Averages, as ratios"), 0U);

  result("run", {}, toml);
  interrupt("run", "running");
  EXPECT_EQ(count(overview(), "<li>run (unfinished: 23 of 60 points)</li>"), 1U);
}

}  // namespace
}  // namespace perdura::report
