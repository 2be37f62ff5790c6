// The table, the JSON and the figure of a comparison.
#include "report/compare/output.h"

#include <algorithm>

#include "platform/base/json.h"
#include "tests/report/fixture.h"

namespace perdura::compare {
namespace {

Point point(const std::string& system, const std::string& value_size) {
  std::vector<std::string> values;
  for (const std::string_view column : point_columns()) {
    values.push_back(column == "system"       ? system
                     : column == "value_size" ? value_size
                     : column == "workload"   ? "workloada"
                     : column == "operation"  ? "all"
                     : column == "platform"   ? "sim"
                                              : "");
  }
  return values;
}

Comparison sample(bool modelled) {
  Matching matching;
  matching.modelled = modelled;
  matching.pairs = {{point("erda", "16"), "latency_p99_us", {100}, {100}},
                    {point("erda", "64"), "latency_p99_us", {100}, {105}},
                    {point("erda", "64"), "server_cpu_us_per_op", {0}, {0.5}}};
  matching.unmatched = {{Side::b, point("redo-logging", "64"), ""},
                        {Side::a, point("erda", "16"), "latency_p50_us"}};
  matching.not_valid = {{Side::a, point("erda", "16"), "3", "failed", "full"}};
  return compare(std::move(matching), {});
}

TEST(Text, HasALineForEachComparisonWorstFirstAndListsTheRest) {
  EXPECT_EQ(
      as_text(sample(true)),
      "all points: platform sim\n"
      "\n"
      "           point                                   quantity              A      B      "
      "change  95 % interval  p\n"
      "worse      erda / workloada / value_size 64 / all  server_cpu_us_per_op  0      0.50   "
      "inf     -              -\n"
      "worse      erda / workloada / value_size 64 / all  latency_p99_us        100.0  105.0  "
      "+5.0 %  -              -\n"
      "unchanged  erda / workloada / value_size 16 / all  latency_p99_us        100.0  100.0  "
      "0.0 %   -              -\n"
      "\n"
      "3 compared by the threshold alone: simulated with the same seeds and so without noise, with "
      "fewer repetitions than the 6 that a test needs\n"
      "2 worse, 0 better by more than 2 %; 0 unclear, 1 unchanged, 0 undecided\n"
      "only in B: redo-logging / workloada / value_size 64 / all\n"
      "only in A: erda / workloada / value_size 16 / all, latency_p50_us\n"
      "not compared: A: erda / workloada / value_size 16 / all, repetition 3: failed: full\n");
}

TEST(Text, HasNothingThatATerminalObeys) {
  Matching matching;
  matching.pairs = {{point("er\x1b[2Jda", "16"), "latency_p99_us", {1}, {1}}};
  matching.not_valid = {{Side::a, point("erda", "16"), "3", "failed", "fu\x07ll"}};
  const std::string text = as_text(compare(std::move(matching), {}));
  EXPECT_NE(text.find("er\\x1b[2Jda / workloada / all"), std::string::npos) << text;
  EXPECT_NE(text.find("failed: fu\\x07ll"), std::string::npos) << text;
}

TEST(Text, ListsPointsOfAHostThatWasNotQuiet) {
  Comparison comparison = sample(true);
  comparison.matching.noisy = {{Side::b, point("erda", "16"), 2, 5, "crowded"}};
  const std::string text = as_text(comparison);
  EXPECT_NE(text.find("host not quiet: B: erda / workloada / value_size 16 / all: 2 of 5 "
                      "repetitions: crowded\n"),
            std::string::npos)
      << text;
  const auto json = Json::parse(as_json(comparison));
  EXPECT_EQ(json["noisy"][0]["run"], "b");
  EXPECT_EQ(json["noisy"][0]["noisy"], 2);
}

TEST(Text, NamesWhatWasLostOnce) {
  Comparison comparison = sample(true);
  EXPECT_EQ(lost_points(comparison, false), "");
  comparison.matching.unmatched.push_back({Side::a, point("erda", "99"), ""});
  comparison.matching.lost = {{point("erda", "99"), 1, 0, 0, 0}, {point("erda", "77"), 3, 0, 1, 2}};
  const std::string text = as_text(comparison);
  EXPECT_NE(text.find("lost: erda / workloada / value_size 99 / all: missing in B\n"
                      "lost: erda / workloada / value_size 77 / all: 2 of 3 repetitions not valid "
                      "in B, 0 of 3 in A\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(report::count(text, "value_size 99"), 1U) << text;
  EXPECT_EQ(lost_points(comparison, false),
            "2 points of A are lost in B, such as erda / workloada / value_size 99 / all: missing "
            "in B; give --ignore-missing if B is not meant to have all of A's points");
  EXPECT_EQ(lost_points(comparison, true),
            "1 point of A is lost in B, such as erda / workloada / value_size 77 / all: 2 of 3 "
            "repetitions not valid in B, 0 of 3 in A");
  const auto json = Json::parse(as_json(comparison));
  EXPECT_EQ(json["lost"][0]["missing"], true);
  EXPECT_EQ(json["lost"][1]["not_valid_b"], 2);
}

TEST(Text, BeginsWithWhatNoColumnTells) {
  Comparison comparison = sample(true);
  comparison.matching.differing = {{"out/a", "out/b", {{"seed", "1", "2"}, {"x", "-", "\"y\""}}},
                                   {"out/a", "out/c", {{"profile.text", "a\nb\n", "a\nc\n"}}}};
  EXPECT_TRUE(as_text(comparison)
                  .starts_with("out/a and out/b were not run alike: seed 1 / 2, x - / \"y\"\n"
                               "out/a and out/c were not run alike: profile.text line 2 'b' / 'c'\n"
                               "all points: "))
      << as_text(comparison);
  const auto json = Json::parse(as_json(comparison));
  EXPECT_EQ(json["differing"][0]["differences"]["seed"], Json::parse(R"(["1", "2"])"));
  EXPECT_EQ(json["differing"][1]["second"], "out/c");
}

TEST(Text, SaysPAndIntervalOfWhatWasTested) {
  Matching matching;
  matching.pairs = {{point("erda", "16"),
                     "throughput_ops_s",
                     {100, 101, 102, 103, 104, 105},
                     {200, 201, 202, 203, 204, 205}}};
  const std::string text = as_text(compare(std::move(matching), {}));
  EXPECT_NE(text.find("better  erda / workloada / all  throughput_ops_s  102.5  202.5  +97.6 %  "
                      "+93.3 .. +102.0 %  0.0022\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 tested with the Mann-Whitney U test"), std::string::npos) << text;
}

TEST(Text, SaysInOneLineHowManyRepetitionsAreMissing) {
  EXPECT_EQ(too_few_repetitions(sample(true)), "");
  const std::string line = too_few_repetitions(sample(false));
  EXPECT_EQ(line,
            "no comparison can be decided: with 1 repetition on each side, no difference is "
            "significant at alpha 0.01 among 3 comparisons; run A and B with at least 6 "
            "repetitions each");
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 0);
}

TEST(Json, HoldsTheSameWithAllColumns) {
  const auto json = Json::parse(as_json(sample(true)));
  EXPECT_EQ(json["worse"], 2);
  EXPECT_EQ(json["provenance"], "modelled");
  ASSERT_EQ(json["comparisons"].size(), 3U);
  EXPECT_TRUE(json["comparisons"][0]["ratio"].is_null()) << "infinite";
  EXPECT_EQ(json["comparisons"][1]["ratio"], 1.05);
  EXPECT_EQ(json["comparisons"][1]["verdict"], "worse");
  EXPECT_EQ(json["comparisons"][1]["point"]["value_size"], "64");
  EXPECT_EQ(json["comparisons"][1]["point"].size(), point_columns().size());
  EXPECT_TRUE(json["comparisons"][1]["p"].is_null());
  EXPECT_EQ(json["unmatched"][0]["only_in"], "b");
  EXPECT_EQ(json["not_valid"][0]["reason"], "full");
}

TEST(FigureCsv, HasARowForEachComparisonUpToWhatIsLegible) {
  EXPECT_EQ(figure_csv(sample(true)),
            "series,label,series_index,style,row,name,change,low,high,threshold\n"
            "worse,worse,0,1,0,erda / workloada / value_size 64 / all: server_cpu_us_per_op,,,,2\n"
            "worse,worse,0,1,1,erda / workloada / value_size 64 / all: latency_p99_us,5,,,2\n"
            "unchanged,unchanged,1,0,2,erda / workloada / value_size 16 / all: latency_p99_us,"
            "0,,,2\n");
  Matching named;
  named.pairs = {{point("erda, \"mended\"", "16"), "latency_p99_us", {1}, {1}}};
  EXPECT_NE(figure_csv(compare(std::move(named), {}))
                .find(",0,\"erda, \"\"mended\"\" / workloada / all: latency_p99_us\",0,,,2\n"),
            std::string::npos);
  Matching matching;
  for (std::size_t i = 0; i < kFigureRows + 5; ++i) {
    matching.pairs.push_back({point("erda", std::to_string(i)), "latency_p50_us", {1}, {1}});
  }
  const std::string csv = figure_csv(compare(std::move(matching), {}));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), kFigureRows + 1);
}

using FigureTest = report::ReportTest;

TEST_F(FigureTest, IsDrawnForOneRowAsForMany) {
  for (const std::size_t rows : {1U, 70U}) {
    Matching matching;
    for (std::size_t i = 0; i < rows; ++i) {
      std::vector<double> a;
      std::vector<double> b;
      for (std::size_t k = 0; k < 12; ++k) {
        a.push_back(100 + static_cast<double>(k));
        b.push_back(a.back() * (1.1 + 0.01 * static_cast<double>(i)));
      }
      matching.pairs.push_back({point("erda", std::to_string(i)), "latency_p50_us", a, b});
    }
    const Comparison comparison = compare(std::move(matching), {});
    ASSERT_EQ(comparison.count(ChangeKind::worse), rows);
    const auto drawn =
        draw(comparison, {.plots = PERDURA_PLOTS, .out = root(), .title = "a and b"});
    ASSERT_TRUE(drawn) << drawn.error().message;
    const std::string svg = read("comparison.svg");
    const std::size_t shown = std::min(rows, kFigureRows);
    EXPECT_EQ(report::count(svg, ": latency_p50_us</"), shown);
    EXPECT_EQ(svg.find("60 of 70, worst first") != std::string::npos, rows == 70U);
    EXPECT_GT(std::filesystem::file_size(root() / "comparison.png"), 1000U);
    EXPECT_EQ(report::count(read("comparison.gp"), "plots/comparison.gp"), 1U);
  }
}

TEST_F(FigureTest, SaysWhyItCannotBeDrawn) {
  const Comparison comparison = sample(true);
  write("file", "no folder");
  const auto nowhere =
      draw(comparison, {.plots = PERDURA_PLOTS, .out = root() / "file/no", .title = ""});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find(": cannot be written"), std::string::npos)
      << nowhere.error().message;
  const auto no_program = draw(
      comparison, {.plots = PERDURA_PLOTS, .out = root(), .title = "", .gnuplot = "no-gnuplot"});
  ASSERT_FALSE(no_program);
  EXPECT_NE(no_program.error().message.find("no-gnuplot: cannot be started"), std::string::npos);
}

}  // namespace
}  // namespace perdura::compare
