#include "report/figure_data.h"

#include <cmath>
#include <numeric>

#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

class FigureDataTest : public ReportTest {
 protected:
  schema::Expected<FigureData> data(const std::vector<Cells>& rows, const schema::DataSpec& spec) {
    write("points.csv", points_csv(rows));
    auto points = Points::read(root() / "points.csv");
    EXPECT_TRUE(points) << points.error().message;
    std::vector<std::size_t> all(points->size());
    std::iota(all.begin(), all.end(), 0u);
    return collect(*points, all, spec, {"erda", "redo-logging", "read-after-write"});
  }

  static schema::DataSpec cpu(bool normalized) {
    schema::DataSpec spec;
    spec.id = "22";
    spec.x = "workload";
    spec.y = "server_cpu_us_per_op";
    if (normalized) spec.normalize = schema::Condition{"system", {"erda"}};
    return spec;
  }

  static Cells cost(const std::string& system, const std::string& workload,
                    const std::string& value, const std::string& repetition = "0") {
    return {{"system", system},
            {"workload", workload},
            {"server_cpu_us_per_op", value},
            {"repetition", repetition}};
  }
};

TEST_F(FigureDataTest, SeveralColumnsOfXGiveAPlaceForEachCombination) {
  schema::DataSpec spec;
  spec.id = "2a";
  spec.x = "ddio";
  spec.x_more = {"receive_buffers"};
  spec.y = "latency_mean_us";
  EXPECT_TRUE(spec.point_by_point());
  EXPECT_EQ(spec.shown_x_axis(), "DDIO / receive buffers");
  std::vector<Cells> rows;
  for (const std::string ddio : {"on", "off"}) {
    for (const std::string buffers : {"dram", "pm"}) {
      rows.push_back({{"ddio", ddio},
                      {"receive_buffers", buffers},
                      {"latency_mean_us", std::to_string(rows.size() + 1)}});
    }
  }
  const auto figure = data(rows, spec);
  ASSERT_TRUE(figure) << figure.error().message;
  const std::vector<std::string> places{"On / DRAM", "On / PM", "Off / DRAM", "Off / PM"};
  EXPECT_EQ(figure->xs, places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(figure->find("erda", places[i])->mean, static_cast<double>(i + 1));
    EXPECT_EQ(spec.shown_x(places[i]), places[i]);
  }
}

TEST_F(FigureDataTest, NormalizationDividesEachRepetitionByItsOwnBaseline) {
  const auto figure = data(
      {cost("erda", "workloadb", "0.5", "0"), cost("erda", "workloadb", "0.25", "1"),
       cost("redo-logging", "workloadb", "10", "0"), cost("redo-logging", "workloadb", "10", "1")},
      cpu(true));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->unit, "ratio");
  EXPECT_EQ(figure->find("erda", "workloadb")->mean, 1.0);
  EXPECT_EQ(figure->find("redo-logging", "workloadb")->mean, (20.0 + 40.0) / 2);
  EXPECT_EQ(figure->find("redo-logging", "workloadb")->repetitions, 2u);
}

// [systems.NAME.workload] gives a system values of its own, by which its rows differ from the baseline's.
TEST_F(FigureDataTest, NormalizationLooksPastWhatEachSeriesHasOneValueOf) {
  std::vector<Cells> rows{cost("erda", "workloadb", "2"), cost("redo-logging", "workloadb", "6"),
                          cost("erda", "workloadc", "3"), cost("redo-logging", "workloadc", "12")};
  for (Cells& row : rows) row["clients"] = row["system"] == "erda" ? "1" : "8";
  const auto figure = data(rows, cpu(true));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->find("redo-logging", "workloadb")->mean, 3.0);
  EXPECT_EQ(figure->find("redo-logging", "workloadc")->mean, 4.0);

  rows.back()["clients"] = "9";
  const auto differing = data(rows, cpu(true));
  ASSERT_TRUE(differing) << differing.error().message;
  EXPECT_EQ(differing->omitted.size(), 2u) << "the series has two values: they are two points";
}

// Erda, section 5.4: the CPU cost of Erda is 0, hence the normalized costs are positive infinity.
TEST_F(FigureDataTest, ACostOverZeroIsInfiniteAndZeroOverZeroIsZero) {
  const auto figure =
      data({cost("erda", "workloadc", "0"), cost("redo-logging", "workloadc", "7")}, cpu(true));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->find("erda", "workloadc")->mean, 0.0);
  EXPECT_TRUE(std::isinf(figure->find("redo-logging", "workloadc")->mean));
}

TEST_F(FigureDataTest, WithoutAValidBaselineTheRowIsOmittedAndNotInvented) {
  Cells failed = cost("erda", "workloadb", "1");
  failed["verdict"] = "failed";
  failed["reason"] = "timed out";
  const auto figure = data({failed, cost("redo-logging", "workloadb", "7")}, cpu(true));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_TRUE(figure->points.empty());
  ASSERT_EQ(figure->omitted.size(), 2u);
  EXPECT_EQ(figure->omitted[0].reason, "failed: timed out");
  EXPECT_EQ(figure->omitted[1].reason, "no valid row of erda to normalize by");
}

TEST_F(FigureDataTest, InvalidRowsAreNeverDrawn) {
  Cells invalid = cost("erda", "workloadb", "9");
  invalid["verdict"] = "invalid";
  const auto figure = data({invalid, cost("erda", "workloadb", "3", "1")}, cpu(false));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->find("erda", "workloadb")->mean, 3.0);
  EXPECT_EQ(figure->rows, (std::vector<std::size_t>{1}));
  EXPECT_EQ(figure->omitted.size(), 1u);
}

TEST_F(FigureDataTest, AnEmptyCellIsNotMeasuredAndNotZero) {
  const auto figure = data({cost("erda", "workloadb", "")}, cpu(false));
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_TRUE(figure->points.empty());
  EXPECT_EQ(figure->omitted.at(0).reason, "server_cpu_us_per_op was not measured");
}

TEST_F(FigureDataTest, NumbersOnTheAxisRiseWhateverTheOrderOfTheSweep) {
  schema::DataSpec spec = cpu(false);
  spec.x = "value_size";
  Cells large = cost("erda", "workloadb", "3");
  large["value_size"] = "1024";
  Cells small = cost("erda", "workloadb", "3");
  small["value_size"] = "64";
  const auto figure = data({large, small}, spec);
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->xs, (std::vector<std::string>{"64", "1024"}));
}

TEST_F(FigureDataTest, RowsThatWhereDoesNotTellApartAreAnError) {
  Cells more = cost("erda", "workloadb", "4");
  more["clients"] = "8";
  const auto figure = data({cost("erda", "workloadb", "3"), more}, cpu(false));
  ASSERT_FALSE(figure);
  EXPECT_NE(figure.error().message.find("points.csv:3: same point of figure or table 22 as line 2, "
                                        "differing in clients"),
            std::string::npos)
      << figure.error().message;
}

TEST_F(FigureDataTest, ThroughputIsShownInThousandsPerSecond) {
  schema::DataSpec spec = cpu(false);
  spec.y = "throughput_ops_s";
  const auto figure = data({{{"throughput_ops_s", "96350"}}}, spec);
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_EQ(figure->unit, "kop/s");
  EXPECT_DOUBLE_EQ(figure->find("erda", "workloadc")->mean, 96.35);
}

TEST(Averages, UseOnlyThePointsThatEverySeriesHas) {
  FigureData figure;
  figure.series = {{"a", 0}, {"b", 1}};
  figure.xs = {"1", "2"};
  figure.points[{"a", "1"}] = {10, 0, 1};
  figure.points[{"b", "1"}] = {20, 0, 1};
  figure.points[{"a", "2"}] = {1000, 0, 1};
  const Averages averages = average_over_x(figure);
  EXPECT_EQ(averages.used, 1u);
  EXPECT_EQ(averages.total, 2u);
  EXPECT_EQ(averages.by_series.at("a"), 10);
}

TEST(ConfidenceInterval, IsStudentsForFewSamples) {
  EXPECT_EQ(confidence_half_width({5}), 0);
  // Two samples one apart: standard error 0.5, t(1) = 12.7062.
  EXPECT_NEAR(confidence_half_width({1, 2}), 12.7062 * 0.5, 1e-4);
  EXPECT_NEAR(confidence_half_width({1, 2, 3}), 4.30265 / std::sqrt(3.0), 1e-4);
}

}  // namespace
}  // namespace perdura::report
