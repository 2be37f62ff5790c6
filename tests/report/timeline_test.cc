// Figures over time: one point, from timeline.csv.
#include "harness/schema/columns.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

/// A timeline.csv of a point as fixture.cc's plain row has it. `cells` are those of one interval.
std::string timeline_csv(const std::vector<std::string>& cells,
                         const std::string& system = "erda") {
  std::string text;
  for (const schema::Column& column : schema::identity_columns())
    text += std::string(column.name) + ',';
  text +=
      "time_ms,operations,latency_mean_us,latency_max_us,free_percent,cleanings,cleanings_now\n";
  for (const std::string& each : cells) {
    text += "5,test,sim,modelled,bench," + system +
            ",workloadc,16,16,1000,4,1,2,,closed,,,,,,,,7,0," + each + "\n";
  }
  return text;
}

const std::vector<std::string> kCourse{"0,10,60,90,50,0,0", "2,0,,,40,0,1", "4,30,100,2000,70,1,0",
                                       "6,10,80,500,65,1,1"};

std::string figure(const std::string& more = "") {
  return "[[figure]]\nid = \"course\"\ntitle = \"A course\"\ndata = \"timeline\"\n"
         "plot = \"over-time\"\n" +
         more;
}

class OverTimeTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    result("run", {{{"operations", "50"}}}, figure());
    write("run/timeline.csv", timeline_csv(kCourse));
  }
};

TEST_F(OverTimeTest, IsDrawnFromTheIntervalsOfItsPoint) {
  const std::string html = page();
  EXPECT_EQ(count(html, "<figure id=\"fig-course\">"), 1U);
  EXPECT_EQ(count(html, "<svg "), 1U);
  EXPECT_EQ(read("report/figures/course.csv"),
            "series,label,series_index,style,x,y,y_max,free_percent,cleanings,cleanings_now,"
            "operations\n"
            "erda,Erda,0,0,0,60,90,50,0,0,10\n"
            "erda,Erda,0,0,2,,,40,0,1,0\n"
            "erda,Erda,0,0,4,100,2000,70,1,0,30\n"
            "erda,Erda,0,0,6,80,500,65,1,1,10\n");
}

TEST_F(OverTimeTest, SaysTheLatencyDuringCleaningsAndOtherwise) {
  const std::string html = page();
  EXPECT_NE(html.find("<td>while something is being cleaned</td><td class=\"n\">80.00</td>"
                      "<td class=\"n\">500.0</td>"),
            std::string::npos);
  EXPECT_NE(html.find("<td>otherwise</td><td class=\"n\">90.00</td><td class=\"n\">2000</td>"),
            std::string::npos);
  EXPECT_NE(html.find("Cleanings: 1, in 50 % of the intervals."), std::string::npos);
}

TEST_F(OverTimeTest, NeedsNeitherSpaceNorCleanings) {
  write("run/timeline.csv", timeline_csv({"0,10,60,90,,,", "2,10,61,91,,,", "4,9,62,99,,,"}));
  const std::string html = page();
  EXPECT_EQ(count(html, "<svg "), 1U);
  EXPECT_EQ(html.find("while something is being cleaned"), std::string::npos);
}

TEST_F(OverTimeTest, OfOnePointIsNotMixedWithOthers) {
  result("run", {{{"operations", "50"}}, {{"system", "other"}, {"operations", "77"}}},
         figure("where = { system = \"erda\" }\n"));
  write("run/timeline.csv", timeline_csv({"0,77,60,90,,,"}, "other"));
  EXPECT_NE(page().find("Nothing to draw"), std::string::npos);
}

TEST_F(OverTimeTest, ShowsTheFirstRepetitionAndListsTheOthers) {
  result("run",
         {{{"repetition", "1"}, {"seed", "8"}, {"operations", "9"}},
          {{"repetition", "0"}, {"operations", "9"}}},
         figure());
  const std::string html = page();
  EXPECT_EQ(count(html, "<svg "), 1U);
  EXPECT_NE(html.find("<a href=\"../run/points.csv\">run/points.csv, line 2</a>"),
            std::string::npos);
  EXPECT_NE(html.find("repetition 1</td><td><b>a figure over time shows the first repetition</b>"),
            std::string::npos);
}

TEST_F(OverTimeTest, OfAPointThatIsNotValidIsNotDrawn) {
  result("run", {{{"verdict", "failed"}, {"reason", "full"}}}, figure());
  const std::string html = page();
  EXPECT_EQ(count(html, "<svg "), 0U);
  EXPECT_NE(html.find("Nothing to draw: none of the 1 rows is valid"), std::string::npos);
}

TEST_F(OverTimeTest, OfSeveralPointsIsRefused) {
  result("run", {{{"operations", "1"}}, {{"system", "other"}, {"operations", "1"}}}, figure());
  EXPECT_NE(error().find("figure course (line 2 of the experiment) shows one point over time, and "
                         "its 'where' leaves the systems erda and other; name one"),
            std::string::npos);
  result("run", {{{"operations", "1"}}, {{"clients", "5"}, {"operations", "1"}}}, figure());
  EXPECT_NE(error().find("same point of figure or table course as line 2, differing in clients"),
            std::string::npos);
}

TEST_F(OverTimeTest, WithoutATimelineIsRefused) {
  std::filesystem::remove(root() / "run/timeline.csv");
  EXPECT_NE(error().find("figure course needs "), std::string::npos);
}

TEST_F(OverTimeTest, AnErrorInTheTimelineNamesItsLine) {
  write("run/timeline.csv", timeline_csv({"0,10,60,90,50,0,0", "2,10,6O,90,50,0,0"}));
  EXPECT_NE(error().find("timeline.csv:3: latency_mean_us is '6O', not a number"),
            std::string::npos);
  write("run/timeline.csv", timeline_csv({",10,60,90,50,0,0"}));
  EXPECT_NE(error().find("timeline.csv:2: time_ms is '', not a number"), std::string::npos);
  write("run/timeline.csv", "time_ms\n1\n");
  EXPECT_NE(error().find("timeline.csv:1: column 'schema_version' is missing"), std::string::npos);
}

TEST_F(OverTimeTest, TakesNoColumns) {
  result("run", {{{"operations", "1"}}}, figure("y = \"latency_mean_us\"\n"));
  EXPECT_NE(error().find("figure course: unknown key 'y'"), std::string::npos);
  result("run", {{{"operations", "1"}}},
         "[[figure]]\nid = \"a\"\ntitle = \"t\"\ndata = \"other\"\nplot = \"over-time\"\n");
  EXPECT_NE(error().find("figure a: data must be points or timeline"), std::string::npos);
}

}  // namespace
}  // namespace perdura::report
