#include "report/comparison.h"

#include <gtest/gtest.h>

namespace perdura::report {
namespace {

FigureData two_series() {
  FigureData figure;
  figure.unit = "us";
  figure.series = {{"erda", 0}, {"redo-logging", 1}};
  figure.xs = {"16"};
  figure.points[{"erda", "16"}] = {50, 0, 1};
  figure.points[{"redo-logging", "16"}] = {75, 0, 1};
  return figure;
}

ReportedPaper paper_of(const std::string& unit) {
  ReportedPaper paper;
  for (const auto& [system, number] :
       {std::pair{"erda", 100.0}, std::pair{"redo-logging", 200.0}}) {
    Claim claim;
    claim.figure = "14";
    claim.workload = "workloadc";
    claim.system = system;
    claim.number = number;
    claim.unit = unit;
    claim.line = paper.claims.size() + 2;
    paper.claims.push_back(claim);
  }
  return paper;
}

schema::DataSpec figure_14() {
  schema::DataSpec spec;
  spec.id = "14";
  return spec;
}

TEST(Comparison, SetsOursBesideThePapers) {
  const schema::DataSpec spec = figure_14();
  const ReportedPaper paper = paper_of("us");
  const auto comparison = compare_averages(two_series(), "workloadc", {spec, &paper, true});
  ASSERT_TRUE(comparison) << comparison.error().message;
  const Compared& row = comparison->rows.at(1);
  EXPECT_EQ(row.to_baseline, 1.5);
  EXPECT_EQ(row.paper_to_baseline, 2.0);
  EXPECT_EQ(row.to_paper, 0.375);
}

TEST(Comparison, MeasuredNumbersAreNotDividedByThePapers) {
  const schema::DataSpec spec = figure_14();
  const ReportedPaper paper = paper_of("us");
  const auto comparison = compare_averages(two_series(), "workloadc", {spec, &paper, false});
  ASSERT_TRUE(comparison) << comparison.error().message;
  EXPECT_FALSE(comparison->rows.at(1).to_paper);
  EXPECT_EQ(comparison->rows.at(1).paper_to_baseline, 2.0);
}

TEST(Comparison, AnotherUnitThanTheFiguresIsAnError) {
  const schema::DataSpec spec = figure_14();
  const ReportedPaper paper = paper_of("ms");
  const auto comparison = compare_averages(two_series(), "workloadc", {spec, &paper, true});
  ASSERT_FALSE(comparison);
  EXPECT_NE(comparison.error().message.find(":2: unit 'ms'"), std::string::npos)
      << comparison.error().message;
}

}  // namespace
}  // namespace perdura::report
