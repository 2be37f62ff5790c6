// The table with which the page begins: what each design guarantees, and what it costs.
#include "report/designs.h"

#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

class DesignsTest : public ReportTest {
 protected:
  Designs designs() {
    const auto folders = read_result_folders(root());
    EXPECT_TRUE(folders) << folders.error().message;
    return gather_designs(*folders);
  }
  /// The first table of the page.
  std::string table() {
    const std::string html = page();
    const std::size_t start = html.find("<h2 id=\"designs\">");
    return start == std::string::npos ? "" : html.substr(start, html.find("</section>") - start);
  }
};

Cells latency(const std::string& system, const std::string& size, const std::string& operation,
              const std::string& p50, const std::string& p99 = "9") {
  return {{"system", system},
          {"value_size", size},
          {"operation", operation},
          {"latency_mean_us", p50},
          {"latency_p99_us", p99}};
}

TEST_F(DesignsTest, HasARowForEachSystemAndStandsFirst) {
  auto rows = latency_rows();
  for (const std::string system : {"erda", "redo-logging"}) {
    rows.push_back(latency(system, "16", "update", "5"));
  }
  result("run", rows, latency_figure("14"));
  const std::string html = table();
  for (const char* title : {"Erda", "Redo Logging", "Read After Write"}) {
    EXPECT_EQ(count(html, std::string("<tr><td>") + title + "</td>"), 1U) << html;
  }
  const std::string whole = read("report/index.html");
  EXPECT_LT(whole.find("<table"), whole.find("<h2 id=\"overview\">"));
  EXPECT_EQ(whole.find("<h2 id=\"designs\">"), whole.find("<h2"));
}

// Of three points one system lacks one, from which nobody gains; the middle one of the others
// counts.
TEST_F(DesignsTest, SetsAllAgainstTheSamePoints) {
  std::vector<Cells> rows;
  for (const std::string size : {"16", "64", "256"}) {
    rows.push_back(latency("erda", size, "read", size));
    if (size != "256") rows.push_back(latency("redo-logging", size, "read", "100", "200"));
  }
  result("run", rows, latency_figure("14"));
  const Designs found = designs();
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_EQ(found.operations, std::vector<std::string>{"read"});
  const MeasuredCost& cost = found.groups[0].rows[0].costs.at({kMean, "read"});
  EXPECT_EQ(cost.value, 64);
  EXPECT_NE(cost.point.find("value_size 64"), std::string::npos) << cost.point;
  const std::string html = table();
  EXPECT_EQ(count(html, ">64.00 / 9.00</a>"), 1U) << html;
  EXPECT_EQ(count(html, ">100.0 / 200.0</a>"), 1U) << html;
  EXPECT_GE(count(html, "value_size 64"), 2U) << html;
  EXPECT_EQ(count(read("report/designs.csv"), "latency_mean_us,read,64,run,"), 1U)
      << read("report/designs.csv");
}

// Of several runs of the same systems, one that is made to show a metric is asked for it, in the
// unit in which its figures show it.
TEST_F(DesignsTest, APriceIsThatOfTheRunWhoseFiguresAreAboutIt) {
  const auto rows = [](const char* throughput) {
    std::vector<Cells> made;
    for (const std::string system : {"erda", "redo-logging"}) {
      made.push_back({{"system", system}, {"throughput_ops_s", throughput}});
      made.push_back({{"system", system}, {"clients", "8"}, {"throughput_ops_s", "1000"}});
    }
    return made;
  };
  result("other", rows("9000"), latency_figure("14"));
  std::string figure = latency_figure("18");
  figure.replace(figure.find("latency_mean_us"), 15, "throughput_ops_s");
  result("throughput", rows("2000"), figure);
  const Designs found = designs();
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_EQ(found.groups[0].runs.size(), 2U);
  const MeasuredCost& cost = found.groups[0].rows[0].costs.at({"throughput_ops_s", "all"});
  EXPECT_EQ(cost.run->name, "throughput");
  EXPECT_EQ(cost.value, 1) << "in kop/s, of 8 clients";
}

// What depends on the server is said of the server.
TEST_F(DesignsTest, SaysOnWhichServersADesignKeepsWhat) {
  const auto row = [](const char* domain, const char* ddio, const char* guarantee) {
    return Cells{{"domain", domain},  {"ddio", ddio},           {"guarantee", guarantee},
                 {"transport", "ib"}, {"persistence", "paper"}, {"latency_p50_us", "1"}};
  };
  result("run",
         {row("dmp", "on", "none"), row("dmp", "off", "ordered"), row("mhp", "on", "ordered"),
          row("mhp", "off", "ordered"), row("wsp", "on", "durable")},
         latency_figure("14"));
  const std::string html = table();
  EXPECT_EQ(count(html,
                  "<td>Erda, as published</td><td class=\"wrong apart\">none on DMP with DDIO<br>"
                  "<span class=\"yes\">ordered on DMP without DDIO, MHP; durable on WSP with "
                  "DDIO</span></td>"),
            1U)
      << html;
}

TEST_F(DesignsTest, SaysOnHowManyKindsOfServersNoWriteIsLost) {
  result("run", latency_rows(), latency_figure("14"));
  write("guarantees/tables.toml",
        "[[table]]\nname = \"systems\"\ntitle = \"S\"\ncaption = \"C\"\nverdicts = true\n");
  write("guarantees/systems.csv",
        "system,dmp,mhp,wsp\nerda,none,durable-writes,durable\n\"erda, persistence = "
        "correct\",durable,durable,durable\nredo-logging,durable,durable,durable\n"
        "read-after-write,durable,none,refused: needs WRITE_WITH_IMM\n");
  const std::string html = table();
  EXPECT_EQ(count(html, "<a href=\"#guarantees-systems\">2 of 3</a>"), 1U) << html;
  EXPECT_EQ(count(html, "<a href=\"#guarantees-systems\">3 of 3</a>"), 1U) << html;
  EXPECT_EQ(count(html, "<a href=\"#guarantees-systems\">1 of 2, 1 refused</a>"), 1U) << html;
}

TEST_F(DesignsTest, RemarksOnTheRunsStandFirst) {
  result("run", latency_rows(), latency_figure("14"));
  write("remarks.txt", "One repetition of <each>.\n");
  const std::string html = page();
  const std::size_t at = html.find("<p class=\"small\">One repetition of &lt;each&gt;.</p>");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(at, html.find("<h2"));
}

TEST_F(DesignsTest, VariantsAreNoDesigns) {
  result("run", {latency("erda", "16", "all", "1"), latency("erda-small", "16", "all", "2")},
         latency_figure("14") + "[systems.erda-small]\nvariant_of = \"erda\"\n");
  const Designs found = designs();
  ASSERT_EQ(found.groups.size(), 1U);
  ASSERT_EQ(found.groups[0].rows.size(), 1U);
  EXPECT_EQ(found.groups[0].rows[0].design.system, "erda");
  EXPECT_EQ(found.operations, std::vector<std::string>{"all"});
}

TEST_F(DesignsTest, ModelledAndMeasuredAreGroupsOfTheirOwn) {
  auto rows = latency_rows();
  result("sim", rows, latency_figure("14"));
  for (Cells& row : rows) row = measured(row);
  result("shm", rows, latency_figure("14"));
  const Designs found = designs();
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_TRUE(found.groups[0].origin.modelled());
  EXPECT_FALSE(found.groups[1].origin.modelled());
}

// Of three runs the first and the last share an operation, so no table has a column that only
// other rows fill.
TEST_F(DesignsTest, GroupsWithoutACommonOperationHaveTablesOfTheirOwn) {
  result("a", {latency("erda", "16", "read", "1")}, latency_figure("14"));
  std::vector<Cells> files{latency("nova", "16", "create", "2"), latency("nova", "16", "all", "2")};
  result("b", files, latency_figure("15"));
  std::vector<Cells> both{measured(latency("level", "16", "read", "3")),
                          measured(latency("level", "16", "all", "3")),
                          measured(latency("level", "16", "update", "4"))};
  result("c", both, latency_figure("16"));
  const std::vector<Designs> tables = tables_of(designs());
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].operations, (std::vector<std::string>{"read", "update"}));
  EXPECT_EQ(tables[0].groups.size(), 2U);
  EXPECT_EQ(tables[1].operations, std::vector<std::string>{"create"});
  EXPECT_EQ(count(table(), "<table"), 2U) << table();
}

TEST_F(DesignsTest, EscapesNames) {
  result("run", {latency("<b>", "16", "all", "1")},
         latency_figure("14") + "[systems.erda]\ntitle = \"E\"\n");
  EXPECT_EQ(count(table(), "<td>&lt;b&gt;</td>"), 1U) << table();
}

}  // namespace
}  // namespace perdura::report
