// Claims of papers, checked on rows.
#include "harness/report/claims.h"

#include <numeric>

#include "harness/report/reported.h"
#include "tests/harness/report/fixture.h"

namespace perdura::report {
namespace {

std::vector<std::size_t> all_rows(const Points& points) {
  std::vector<std::size_t> rows(points.size());
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

class ClaimsTest : public ReportTest {
 protected:
  static Cells point(const std::string& system, const std::string& domain,
                     const std::string& latency) {
    return {{"system", system}, {"domain", domain}, {"latency_mean_us", latency}};
  }
  ClaimResult checked(const Claim& claim, const std::vector<Cells>& rows) {
    write("points.csv", points_csv(rows));
    const auto points = Points::read(root() / "points.csv");
    EXPECT_TRUE(points) << points.error().message;
    const auto result = check(claim, "c.toml", *points, all_rows(*points));
    EXPECT_TRUE(result) << result.error().message;
    return *result;
  }
  static Claim wsp_is_faster() {
    Claim claim;
    claim.lower = {{"domain", {"wsp"}}};
    claim.higher = {{"domain", {"dmp", "mhp"}}};
    return claim;
  }
  std::string mistake(const std::string& toml) {
    write("c.toml", toml);
    const auto claims = read_claims(root() / "c.toml");
    return claims ? "no error" : claims.error().message.substr(root().string().size() + 1);
  }
};

TEST_F(ClaimsTest, ComparesRowsThatAgreeInWhatIsNotNamed) {
  const ClaimResult result = checked(
      wsp_is_faster(), {point("a", "wsp", "1"), point("a", "mhp", "2"), point("a", "dmp", "4"),
                        point("b", "wsp", "3"), point("b", "mhp", "3"), point("c", "dmp", "9")});
  EXPECT_EQ(result.pairs, 3U);
  EXPECT_EQ(result.holding, 2U) << "equal is not lower";
  EXPECT_EQ(result.least_ratio, 1.0);
  EXPECT_EQ(result.largest_ratio, 4.0);
}

TEST_F(ClaimsTest, MayLeaveColumnsOutAndAddOthers) {
  Claim claim = wsp_is_faster();
  claim.any = {"system"};
  std::vector<Cells> rows{point("a", "wsp", "1"), point("b", "mhp", "2"), point("c", "dmp", "4")};
  EXPECT_EQ(checked(claim, rows).pairs, 2U);
  claim.same = {"method"};
  rows[0]["method"] = rows[1]["method"] = "write";
  EXPECT_EQ(checked(claim, rows).pairs, 1U);
  claim.where = {{"system", {"a"}}};
  EXPECT_EQ(checked(claim, rows).pairs, 0U);
}

TEST_F(ClaimsTest, LeaveRowsOutThatAreNotValid) {
  std::vector<Cells> rows{point("a", "wsp", "1"), point("a", "mhp", "2")};
  EXPECT_EQ(checked(wsp_is_faster(), rows).pairs, 1U);
  rows[1]["verdict"] = "failed";
  EXPECT_EQ(checked(wsp_is_faster(), rows).pairs, 0U);
}

TEST_F(ClaimsTest, MaySayThatTwoAreNearlyEqual) {
  Claim claim = wsp_is_faster();
  claim.within_percent = 10;
  EXPECT_EQ(checked(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "1.09")}).holding, 1U);
  EXPECT_EQ(checked(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "0.91")}).holding, 1U);
  EXPECT_EQ(checked(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "1.11")}).holding, 0U);
  EXPECT_EQ(checked(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "0.89")}).holding, 0U);
}

TEST_F(ClaimsTest, AColumnThatIsNotThereIsNamed) {
  write("points.csv", points_csv({point("a", "wsp", "1")}));
  const auto points = Points::read(root() / "points.csv");
  ASSERT_TRUE(points);
  Claim claim = wsp_is_faster();
  claim.line = 7;
  claim.same = {"cache"};
  const auto result = check(claim, "c.toml", *points, {0});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "c.toml:7: points.csv has no column 'cache'; see docs/results.md");
}

TEST_F(ClaimsTest, MistakesAreNamedWithTheirPlace) {
  const std::string start = "[[claim]]\nsection = \"1\"\ntext = \"t\"\n";
  const std::string sides =
      "lower = { domain = \"wsp\" }\nhigher = { domain = [\"dmp\", \"mhp\"] }\n";
  EXPECT_EQ(mistake(start + sides), "no error");
  EXPECT_EQ(mistake(start),
            "c.toml:1: claim: needs lower = { ... } and higher = { ... }; see docs/figures.md");
  EXPECT_EQ(mistake("[[claim]]\ntext = \"t\"\n" + sides),
            "c.toml:1: claim: needs section = \"...\"; see docs/figures.md");
  EXPECT_EQ(mistake(start + sides + "lover = 1\n"),
            "c.toml:1: claim: unknown key 'lover'; see docs/figures.md");
  EXPECT_EQ(mistake(start + sides + "within_percent = -1\n"),
            "c.toml:1: claim: within_percent must be a number from 0; see docs/figures.md");
  EXPECT_EQ(mistake(start + sides + "where = 1\n"),
            "c.toml:1: claim: where must be a table such as { system = \"erda\" }; see "
            "docs/figures.md");
  EXPECT_EQ(mistake(start + sides + "any = [1]\n"),
            "c.toml:1: claim: any takes strings and lists of them; see docs/figures.md");
  EXPECT_EQ(mistake("claim = 1\n"), "c.toml:1: has no [[claim]]; add one, or remove the file");
  EXPECT_EQ(mistake("[[claim\n").substr(0, 9), "c.toml:1:");
}

TEST_F(ClaimsTest, StandInThePage) {
  write("reported/p.csv", "paper,section,figure,quantity,workload,system,value,unit,kind,note\n");
  write("reported/p-claims.toml",
        "[[claim]]\nsection = \"5\"\ntext = \"a < b\"\nlower = { system = \"erda\" }\n"
        "higher = { system = \"redo-logging\" }\n"
        "[[claim]]\nsection = \"6\"\ntext = \"b < a\"\nlower = { system = \"redo-logging\" }\n"
        "higher = { system = \"erda\" }\n"
        "[[claim]]\nsection = \"7\"\ntext = \"nothing of that kind\"\n"
        "lower = { system = \"x\" }\nhigher = { system = \"y\" }\n");
  result("run", latency_rows(), latency_figure("14", "paper = \"p\""));
  ReportOptions chosen = options();
  chosen.reported = root() / "reported";
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  const std::string html = read("report/index.html");
  EXPECT_NE(html.find("<tr><td>5</td><td>a &lt; b</td><td>holds in 2 of 2</td>"),
            std::string::npos);
  EXPECT_NE(html.find("<td>b &lt; a</td><td><b>does not hold</b>: holds in 0 of 2</td>"),
            std::string::npos);
  EXPECT_EQ(html.find("nothing of that kind"), std::string::npos);
}

// The claims of "Correct, Fast Remote Persistence" on the committed results of the 72 cells.
TEST(ClaimsOfRemotePersistence, HoldButForOneMethodThatDdioSlowsDown) {
  const auto paper = read_reported(PERDURA_REPORTED, "correct-fast-remote-persistence");
  ASSERT_TRUE(paper) << paper.error().message;
  const auto points = Points::read(PERDURA_REFERENCE "/remote-log-cells/points.csv");
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_GE(paper->claims.size(), 16U);
  for (const Claim& claim : paper->claims) {
    const auto result = check(claim, paper->claims_file, *points, all_rows(*points));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_GT(result->pairs, 0U) << claim.text;
    const bool of_ddio = claim.text.find("[of DDIO]") != std::string::npos;
    // Single SEND with FLUSH under DMP (no pair: another method) and MHP.
    EXPECT_EQ(result->pairs - result->holding, of_ddio ? 1U : 0U) << claim.text;
  }
}

}  // namespace
}  // namespace perdura::report
