#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/columns.h"
#include "report/points.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

class ReportErrorsTest : public ReportTest {
 protected:
  /// The error is one line that holds `part`, and no page was written.
  void expect_error(const std::string& part) {
    const std::string message = error();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_FALSE(std::filesystem::exists(root() / "report/index.html"));
  }

  void replace_in_points(const std::string& from, const std::string& to) {
    std::string text = read("run/points.csv");
    text.replace(text.find(from), from.size(), to);
    write("run/points.csv", text);
  }

  void SetUp() override {
    ReportTest::SetUp();
    result("run", latency_rows(), latency_figure("14"));
  }
};

TEST_F(ReportErrorsTest, AFolderWithoutResults) {
  std::filesystem::remove_all(root() / "run");
  expect_error("no points.csv here or one folder below");
}

TEST_F(ReportErrorsTest, AnEmptiedExperiment) {
  write("run/experiment.toml", "");
  expect_error("run/experiment.toml:1: name is missing; restore the file");
}

TEST_F(ReportErrorsTest, AFigureOfWords) {
  write("run/experiment.toml",
        "name = \"test\"\n[[figure]]\nid = \"a\"\ntitle = \"t\"\n"
        "plot = \"lines\"\nx = \"clients\"\ny = \"verdict\"\n");
  expect_error(
      "run/experiment.toml:7: figure a: y takes a column of numbers, and verdict has words");
}

TEST_F(ReportErrorsTest, AMissingColumn) {
  replace_in_points("latency_p99_us", "latency_p98_us");
  expect_error("points.csv:1: column 'latency_p99_us' is missing");
}

TEST_F(ReportErrorsTest, AnotherSchemaVersion) {
  replace_in_points("\n5,test", "\n4,test");
  expect_error("points.csv:2: schema_version is '4', this perdura reads 5 to 6");
}

TEST_F(ReportErrorsTest, ACellThatIsNoNumber) {
  replace_in_points(",90,", ",9O,");
  expect_error("points.csv:4: latency_mean_us is '9O', not a number");
}

// What cannot have been measured is refused in every column of numbers: NaN would be neither worse
// nor better than anything, whoever compares it.
TEST_F(ReportErrorsTest, ACellThatNothingCanMeasure) {
  for (const schema::Column& column : schema::point_columns()) {
    const std::string name(column.name);
    if (column.kind != schema::Column::Kind::number || name == "schema_version") continue;
    for (const std::string cell : {"nan", "-nan", "inf", "-inf", "-1", "1e999"}) {
      std::vector<Cells> rows = latency_rows();
      rows[1][name] = cell;
      result("run", rows, latency_figure("14"));
      if (cell == "-1" && name.ends_with("_mean_low_us")) {
        EXPECT_TRUE(Points::read(root() / "run/points.csv")) << "an interval may reach below zero";
        continue;
      }
      expect_error("points.csv:3: " + name + " is '" + cell + "', not a number");
    }
  }
}

// The journal of a sweep that is not complete has all of it; else it is gone.
TEST_F(ReportErrorsTest, ADamagedFileOfAnUnfinishedSweep) {
  for (const bool short_line : {false, true}) {
    result("run", latency_rows(), latency_figure("14"));
    replace_in_points(",90,", short_line ? "," : ",9O,");
    const std::string again = "; run the experiment again in a new folder";
    std::filesystem::remove(root() / "run/journal");
    expect_error(again);
    write("run/journal", "");
    expect_error("; 'perdura run --continue " + (root() / "run").string() +
                 "' writes the file anew");
    write("run/manifest.json", R"({"status": "complete"})");
    expect_error(again);
  }
}

TEST_F(ReportErrorsTest, AFileThatWasCutOff) {
  const std::string text = read("run/points.csv");
  write("run/points.csv", text.substr(0, text.size() - 40));
  expect_error("points.csv:7: ");
}

TEST_F(ReportErrorsTest, AModelledRowThatPassesForMeasured) {
  replace_in_points("modelled", "measured");
  expect_error("points.csv:2: platform 'sim' with provenance 'measured'");
}

TEST_F(ReportErrorsTest, AMissingManifest) {
  std::filesystem::remove(root() / "run/manifest.json");
  expect_error("manifest.json: there is no such file");
}

TEST_F(ReportErrorsTest, ADamagedManifest) {
  write("run/manifest.json", "{\n\"version\": \n");
  expect_error("manifest.json:3: not JSON");
}

TEST_F(ReportErrorsTest, ABrokenExperiment) {
  write("run/experiment.toml", "name = \"x\"\n[[figure\n");
  expect_error("experiment.toml:2: ");
}

TEST_F(ReportErrorsTest, AnUnknownKeyInAFigure) {
  write("run/experiment.toml", latency_figure("14", "colour = \"red\""));
  const std::string text = latency_figure("14", "colour = \"red\"");
  const auto line = 1 + std::count(text.begin(), text.begin() + text.find("colour"), '\n');
  expect_error(fmt::format("experiment.toml:{}: figure 14: unknown key 'colour'", line));
}

TEST_F(ReportErrorsTest, ANumberThatIsNone) {
  for (const std::string number : {"nan", "inf", "[64, -inf]"}) {
    write("run/experiment.toml",
          "[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"lines\"\n"
          "x = \"value_size\"\ny = \"latency_mean_us\"\n"
          "where = { value_size = " +
              number + " }\n");
    expect_error("experiment.toml:7: figure 1: value_size must be a string, a finite number or ");
  }
}

TEST_F(ReportErrorsTest, AColumnThatIsNotThere) {
  const std::string figure =
      "[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"latency-over-value-size\"\n";
  const std::string table = "[[table]]\nid = \"1\"\ntitle = \"t\"\nkind = \"average\"\n";
  const std::string x = "x = \"value_size\"\n";
  const std::string y = "y = \"latency_mean_us\"\n";
  for (const std::string& entry : std::vector<std::string>{
           figure + x + "y = \"no\"\n", figure + y + "x = \"no\"\n",
           figure + y + "x = [\"clients\", \"no\"]\n", figure + x + y + "at = \"no\"\n",
           figure + x + y + "series = \"no\"\n", figure + x + y + "where = { no = 1 }\n",
           figure + x + y + "series = \"no\"\nnormalize = { no = 1 }\n",
           "[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"over-time\"\ndata = \"timeline\"\n"
           "where = { no = 1 }\n",
           table + x + "y = \"no\"\n", table + y + "x = \"no\"\n",
           table + x + y + "group = \"no\"\n"}) {
    SCOPED_TRACE(entry);
    write("run/experiment.toml", entry);
    expect_error(" 1: points.csv has no column 'no'");
  }
}

TEST_F(ReportErrorsTest, SeveralColumnsThatAreDrawnOverAnother) {
  write("run/experiment.toml",
        "[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"latency-over-throughput\"\n"
        "x = [\"load\", \"clients\"]\nat = \"throughput_ops_s\"\ny = \"latency_mean_us\"\n");
  expect_error("experiment.toml:6: figure 1: at takes a single column as x");
}

TEST_F(ReportErrorsTest, AnIdUsedTwice) {
  write("run/experiment.toml", latency_figure("14") + latency_figure("14"));
  expect_error("figure 14: the id is used twice");
}

TEST_F(ReportErrorsTest, APlotThatIsNotThere) {
  write("run/experiment.toml",
        "name = \"test\"\n[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"pie\"\n"
        "x = \"value_size\"\ny = \"latency_mean_us\"\n");
  expect_error("experiment.toml:5: figure 1: there is no script ");
}

TEST_F(ReportErrorsTest, APlotOutsideTheFolderOfPlots) {
  write("run/experiment.toml",
        "[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"../secret\"\nx = \"value_size\"\n"
        "y = \"latency_mean_us\"\n");
  expect_error("figure 1: plot must be the plain name of a script in plots/");
}

TEST_F(ReportErrorsTest, APaperWithoutReportedValues) {
  write("run/experiment.toml", "name = \"test\"\n" + latency_figure("14", "paper = \"unwritten\""));
  expect_error("claims.csv: there is nothing of paper 'unwritten'");
}

TEST_F(ReportErrorsTest, GnuplotIsNotInstalled) {
  ReportOptions chosen = options();
  chosen.gnuplot = "no-such-gnuplot";
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  ASSERT_FALSE(written->not_drawn.empty());
  const std::string why =
      "no-such-gnuplot: cannot be started (No such file or directory); install gnuplot, on Debian "
      "the package gnuplot-nox";
  EXPECT_TRUE(written->not_drawn.front().ends_with(why)) << written->not_drawn.front();
  EXPECT_EQ(written->figures, 0U);
  EXPECT_NE(read(written->page).find("Not drawn: " + why), std::string::npos);
}

TEST_F(ReportErrorsTest, AScriptThatGnuplotRejects) {
  write("plots/latency-over-value-size.gp", "plot nonsense nonsense\n");
  ReportOptions chosen = options();
  chosen.plots = root() / "plots";
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  ASSERT_FALSE(written->not_drawn.empty());
  const std::string& why = written->not_drawn.front();
  EXPECT_NE(why.find("latency-over-value-size.gp: gnuplot failed: "), std::string::npos) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  EXPECT_NE(read(written->page).find("Not drawn: "), std::string::npos);
}

// An image of an earlier report would show other data than the page beside it.
TEST_F(ReportErrorsTest, AFigureThatCannotBeDrawnLeavesNoOldImage) {
  const auto before = write_report(options());
  ASSERT_TRUE(before) << before.error().message;
  ASSERT_GT(before->figures, 0U);
  ReportOptions chosen = options();
  chosen.gnuplot = "no-such-gnuplot";
  ASSERT_TRUE(write_report(chosen));
  for (const auto& entry :
       std::filesystem::directory_iterator(before->page.parent_path() / "figures")) {
    EXPECT_NE(entry.path().extension(), ".svg") << entry.path();
    EXPECT_NE(entry.path().extension(), ".png") << entry.path();
  }
}

TEST_F(ReportErrorsTest, TheFolderOfAProbe) {
  std::filesystem::remove(root() / "run" / "points.csv");
  std::filesystem::copy(PERDURA_REFERENCE "/probe/probes.csv", root() / "run" / "probes.csv");
  expect_error("'perdura probe' wrote it and has drawn its figures there");
}

TEST_F(ReportErrorsTest, WordsOnAnAxisOfNumbers) {
  for (const auto plot : {"latency-over-value-size", "over-message-size", "throughput-over-clients",
                          "latency-over-throughput"}) {
    write("run/experiment.toml",
          std::string("name = \"test\"\n[[figure]]\nid = \"1\"\ntitle = \"t\"\nplot = \"") + plot +
              "\"\nx = \"workload\"\ny = \"latency_mean_us\"\n");
    expect_error(std::string("experiment.toml:5: figure 1: the x-axis of plot ") + plot +
                 " takes numbers, and x = workload has words");
  }
}

}  // namespace
}  // namespace perdura::report
