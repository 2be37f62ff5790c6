// Claims of papers: how they are written, and which rows they are about.
#include "report/claims.h"

#include <numeric>

#include "tests/report/fixture.h"

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
  Points points(const std::vector<Cells>& rows) {
    write("points.csv", points_csv(rows));
    auto read = Points::read(root() / "points.csv");
    EXPECT_TRUE(read) << read.error().message;
    return std::move(*read);
  }
  Pairs pairs(const Claim& claim, const std::vector<Cells>& rows) {
    const Points read = points(rows);
    return find_pairs(claim, read, all_rows(read));
  }
  std::size_t holds(const Claim& claim, const std::vector<Cells>& rows) {
    return holding(claim, pairs(claim, rows));
  }
  static Claim wsp_is_faster() {
    Claim claim;
    claim.kind = Claim::Kind::order;
    claim.y = "latency_mean_us";
    claim.lower = {{"domain", {"wsp"}}};
    claim.higher = {{"domain", {"dmp", "mhp"}}};
    return claim;
  }
  schema::Expected<std::vector<Claim>> read_rows(const std::vector<Cells>& rows) {
    write("c.csv", claims_csv(rows));
    return read_claims(root() / "c.csv");
  }
  /// What is wrong with a row, which stands in line 3, in one of its cells.
  std::string mistake(Cells row, const std::string& column = "", const std::string& cell = "") {
    if (!column.empty()) row[column] = cell;
    const auto claims = read_rows({number_claim("14", "w", "s", "1"), std::move(row)});
    if (claims) return "none";
    const std::string start = (root() / "c.csv:3: ").string();
    const std::string end = "; see docs/claims.md";
    const std::string& message = claims.error().message;
    EXPECT_TRUE(message.starts_with(start) && message.ends_with(end)) << message;
    return message.substr(start.size(), message.size() - start.size() - end.size());
  }
};

TEST_F(ClaimsTest, AreReadFromTheirRow) {
  Cells row = order_claim("system=a; domain=dmp|mhp", "system=b (read)");
  row.insert({{"where", "update=single"},
              {"any", "ddio; transport"},
              {"same", "method"},
              {"tolerance", "1.5"},
              {"tolerance_reason", "r"},
              {"basis", "fitted"},
              {"over", "system=c"},
              {"experiment", "one|two"}});
  const auto claims = read_rows({number_claim("14", "w", "s", "62.84"), row});
  ASSERT_TRUE(claims) << claims.error().message;
  ASSERT_EQ(claims->size(), 2U);
  EXPECT_EQ(claims->front().number, 62.84);
  EXPECT_EQ(claims->front().tolerance, 5.0);
  EXPECT_EQ(claims->front().line, 2U);
  EXPECT_EQ(claims->front().basis, Claim::Basis::prediction);
  const Claim& order = claims->back();
  EXPECT_EQ(order.kind, Claim::Kind::order);
  EXPECT_EQ(order.y, "latency_mean_us");
  ASSERT_EQ(order.lower.size(), 2U);
  EXPECT_EQ(order.lower[1].column, "domain");
  EXPECT_EQ(order.lower[1].any_of, (std::vector<std::string>{"dmp", "mhp"}));
  ASSERT_EQ(order.higher.size(), 1U);
  EXPECT_EQ(order.higher[0].any_of, std::vector<std::string>{"b (read)"});
  EXPECT_EQ(order.where.size(), 1U);
  EXPECT_EQ(order.any, (std::vector<std::string>{"ddio", "transport"}));
  EXPECT_EQ(order.same, std::vector<std::string>{"method"});
  EXPECT_EQ(order.tolerance, 1.5);
  EXPECT_EQ(order.experiments, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(order.basis, Claim::Basis::fitted);
  ASSERT_EQ(order.over.size(), 1U);
  EXPECT_EQ(order.over[0].column, "system");
}

TEST_F(ClaimsTest, MistakesAreNamedWithTheirPlace) {
  const Cells number = number_claim("14", "w", "s", "1");
  const Cells order = order_claim("system=a", "system=b");
  EXPECT_EQ(mistake(order), "none");
  for (const std::string column : {"section", "quantity", "experiment"}) {
    EXPECT_EQ(mistake(number, column, ""), column + " is empty");
  }
  EXPECT_EQ(mistake(number, "id", "c1"), "id 'c1' is used twice");
  EXPECT_EQ(mistake(number, "kind", "guess"),
            "kind is 'guess'; it must be one of: exact, ratio, at least, at most, order");
  EXPECT_EQ(mistake(number, "value", "fast"),
            "value is 'fast'; it must be a number from 0 to 1000000000000");
  for (const std::string odd : {"nan", "-1", "1e308", "-inf"}) {
    EXPECT_TRUE(mistake(number, "value", odd).starts_with("value is '" + odd + "'; it must be "));
    EXPECT_TRUE(mistake(number, "tolerance", odd)
                    .starts_with("tolerance is '" + odd + "'; it must be a number from 0 to 1000"));
  }
  EXPECT_EQ(mistake(number, "figure", ""), "needs a figure, or y and where");
  EXPECT_EQ(mistake(number, "tolerance", ""), "tolerance is empty");
  EXPECT_EQ(mistake(number, "tolerance", "-1"),
            "tolerance is '-1'; it must be a number from 0 to 1000");
  EXPECT_EQ(mistake(number, "tolerance_reason", ""), "tolerance_reason is empty");
  EXPECT_EQ(mistake(number, "basis", "maybe"),
            "basis is 'maybe'; it must be one of: prediction, fitted, input");
  EXPECT_EQ(mistake(number, "kind", "at most"), "a bound needs y and where");
  EXPECT_EQ(mistake(number, "not_covered", "why"), "kind must be empty, since not_covered is not");
  EXPECT_EQ(mistake(number, "where", "system=a"), "selectors need y");
  EXPECT_EQ(mistake(number_claim("Table 1", "w", "s", "key - 1")),
            "'key - 1' is not a number, key, value or N; write a sum of products");
  EXPECT_EQ(mistake(order, "value", "1"), "an order has no value");
  EXPECT_EQ(mistake(order, "lower", ""), "lower and higher need each other");
  EXPECT_EQ(mistake(order, "lower", "system"),
            "lower: 'system' must be COLUMN=VALUE or COLUMN=VALUE|VALUE");
}

TEST_F(ClaimsTest, CompareRowsThatAgreeInWhatIsNotNamed) {
  const Pairs found = pairs(
      wsp_is_faster(), {point("a", "wsp", "1"), point("a", "mhp", "2"), point("a", "dmp", "4"),
                        point("b", "wsp", "3"), point("b", "mhp", "3"), point("c", "dmp", "9")});
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(holding(wsp_is_faster(), found), 2U) << "equal is not lower";
  EXPECT_EQ(found.least(), 1.0);
  EXPECT_EQ(found.largest(), 4.0);
}

TEST_F(ClaimsTest, MayLeaveColumnsOutAndAddOthers) {
  Claim claim = wsp_is_faster();
  claim.any = {"system"};
  std::vector<Cells> rows{point("a", "wsp", "1"), point("b", "mhp", "2"), point("c", "dmp", "4")};
  EXPECT_EQ(pairs(claim, rows).size(), 2U);
  claim.same = {"method"};
  rows[0]["method"] = rows[1]["method"] = "write";
  EXPECT_EQ(pairs(claim, rows).size(), 1U);
  claim.where = {{"system", {"a"}}};
  EXPECT_EQ(pairs(claim, rows).size(), 0U);
}

TEST_F(ClaimsTest, LeaveRowsOutThatAreNotValid) {
  std::vector<Cells> rows{point("a", "wsp", "1"), point("a", "mhp", "2")};
  EXPECT_EQ(pairs(wsp_is_faster(), rows).size(), 1U);
  rows[1]["verdict"] = "failed";
  EXPECT_EQ(pairs(wsp_is_faster(), rows).size(), 0U);
}

TEST_F(ClaimsTest, MaySayThatTwoAreNearlyEqual) {
  Claim claim = wsp_is_faster();
  claim.tolerance = 10;
  EXPECT_EQ(holds(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "1.09")}), 1U);
  EXPECT_EQ(holds(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "0.91")}), 1U);
  EXPECT_EQ(holds(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "1.11")}), 0U);
  EXPECT_EQ(holds(claim, {point("a", "wsp", "1.0"), point("a", "mhp", "0.89")}), 0U);
}

TEST_F(ClaimsTest, ValuesAreThoseOfTheValidRowsThatAreNamed) {
  Claim claim;
  claim.y = "latency_mean_us";
  claim.where = {{"system", {"a"}}};
  std::vector<Cells> rows{point("a", "wsp", "1"), point("a", "mhp", "2"), point("b", "mhp", "9"),
                          point("a", "dmp", "100"), point("a", "dmp", "")};
  rows[3]["verdict"] = "invalid";
  const Points read = points(rows);
  EXPECT_EQ(values_of(claim, read, all_rows(read)), (std::vector<double>{1, 2}));
  claim.where = {{"system", {"c"}}};
  EXPECT_EQ(values_of(claim, read, all_rows(read)), std::vector<double>{});
}

// "The gain over messages is more pronounced for WSP": an order of ratios.
TEST_F(ClaimsTest, MayBeAboutTheRatioToAnotherRow) {
  Claim claim;
  claim.kind = Claim::Kind::order;
  claim.y = "latency_mean_us";
  claim.lower = {{"domain", {"wsp"}}};
  claim.higher = {{"domain", {"mhp"}}};
  claim.where = {{"system", {"a"}}};
  claim.over = {{"system", {"b"}}};
  std::vector<Cells> rows{point("a", "wsp", "3"), point("a", "mhp", "2"), point("b", "wsp", "6"),
                          point("b", "mhp", "2")};
  EXPECT_EQ(pairs(claim, rows).ratios, std::vector<double>{2});
  const Points read = points(rows);
  EXPECT_EQ(values_of(claim, read, all_rows(read)), (std::vector<double>{0.5, 1}));
  rows[3]["verdict"] = "failed";
  EXPECT_EQ(pairs(claim, rows).size(), 0U) << "there is nothing to divide by";
  rows[3] = point("b", "mhp", "0");
  EXPECT_EQ(pairs(claim, rows).size(), 0U);
}

TEST_F(ClaimsTest, MayBeWithoutAMeasurement) {
  const auto claims = read_rows({not_covered_claim("no number")});
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->front().not_covered, "no number");
  for (const std::string column : {"experiment", "y", "where", "lower", "over", "tolerance"}) {
    Cells row = not_covered_claim("no number");
    row[column] = "system=a";
    EXPECT_EQ(mistake(row), column + " must be empty, since not_covered is not");
  }
}

const char* const kProbesHeader =
    "platform,provenance,profile,probe,medium,operation,pattern,cache,pages,numa,dimms,size,"
    "threads,"
    "queue_depth,queue_pairs,regions,region_size,read_percent,value,low,high,repetitions,unit\n";

TEST_F(ClaimsTest, AreAboutProbesToo) {
  write("probes.csv",
        kProbesHeader +
            std::string(
                "sim,modelled,p,peak,pm,load,,,,,one,256,4,,,,,,6,6,6,1,GB/s\n"
                "sim,modelled,p,peak,pm,load,,,,,interleaved,256,24,,,,,,36,36,36,1,GB/s\n"
                "sim,modelled,p,peak,pm,ntstore,,,,,interleaved,256,8,,,,,,12,12,12,1,GB/s\n"));
  const auto probes = Points::read_probes(root() / "probes.csv");
  ASSERT_TRUE(probes) << probes.error().message;
  EXPECT_TRUE(probes->are_probes());
  Claim claim;
  claim.kind = Claim::Kind::ratio;
  claim.y = "value";
  claim.lower = {{"dimms", {"one"}}};
  claim.higher = {{"dimms", {"interleaved"}}};
  EXPECT_EQ(find_pairs(claim, *probes, all_rows(*probes)).size(), 0U) << "the threads differ";
  claim.any = {"threads"};
  EXPECT_EQ(find_pairs(claim, *probes, all_rows(*probes)).ratios, std::vector<double>{6});
  claim.where = {{"operation", {"ntstore"}}};
  EXPECT_EQ(values_of(claim, *probes, all_rows(*probes)), std::vector<double>{12});
}

TEST_F(ClaimsTest, OfProbesThatAreDamagedSayWhere) {
  write(
      "probes.csv",
      kProbesHeader + std::string("sim,modelled,p,peak,pm,load,,,,,one,256,4,,,,,,x,6,6,1,GB/s\n"));
  const auto probes = Points::read_probes(root() / "probes.csv");
  ASSERT_FALSE(probes);
  EXPECT_TRUE(probes.error().message.starts_with(
      (root() / "probes.csv:2: value is 'x', not a number from 0").string()))
      << probes.error().message;
}

}  // namespace
}  // namespace perdura::report
