// The tables of what is proven, beside the figures of what was measured.
#include "harness/report/guarantees.h"

#include "tests/harness/report/fixture.h"

namespace perdura::report {
namespace {

class GuaranteesTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    result("run", latency_rows(), latency_figure("14"));
  }
  void guarantees(const std::string& csv) {
    std::filesystem::create_directories(root() / "guarantees");
    write("guarantees/tables.toml",
          "[[table]]\nname = \"cells\"\ntitle = \"Cells & more\"\ncaption = 'Each.'\n"
          "verdicts = true\n");
    write("guarantees/cells.csv", csv);
  }
};

TEST_F(GuaranteesTest, AreShownInWordsWithAColorEach) {
  guarantees("configuration,single\ndmp,right: write-flush\nmhp,\"torn, lost\"\nwsp,wasteful\n");
  const std::string html = page();
  EXPECT_EQ(count(html, "<h3>Cells &amp; more</h3>"), 1U);
  EXPECT_EQ(count(html, "<td class=\"right\">right: write-flush</td>"), 1U);
  EXPECT_EQ(count(html, "<td class=\"wrong\">torn, lost</td>"), 1U);
  EXPECT_EQ(count(html, "<td class=\"wasteful\">wasteful</td>"), 1U);
  EXPECT_EQ(count(html, "href=\"#guarantees\""), 1U);
}

TEST_F(GuaranteesTest, AreReadAsTheyWereWritten) {
  GuaranteeTable table{"cells", "The server's \"cells\"", "It's all there, \\ too.", true, {}};
  table.cells.header = {"configuration", "single, or not"};
  table.cells.rows = {{0, {"dmp", "torn, lost"}}, {0, {"a \"b\"", ""}}};
  std::filesystem::create_directories(root() / "guarantees");
  ASSERT_TRUE(write_guarantees(root() / "guarantees", {table}));
  const auto read = read_guarantees(root());
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().name, table.name);
  EXPECT_EQ(read->front().title, table.title);
  EXPECT_EQ(read->front().caption, table.caption);
  EXPECT_EQ(read->front().verdicts, table.verdicts);
  EXPECT_EQ(read->front().cells.header, table.cells.header);
  ASSERT_EQ(read->front().cells.rows.size(), 2U);
  EXPECT_EQ(read->front().cells.rows[0].cells, table.cells.rows[0].cells);
  EXPECT_EQ(read->front().cells.rows[1].cells, table.cells.rows[1].cells);
}

TEST_F(GuaranteesTest, AreNotMissed) { EXPECT_EQ(count(page(), "guarantees"), 0U); }

TEST_F(GuaranteesTest, ThatWereCutOffAreRefused) {
  guarantees("configuration,single\ndmp\n");
  EXPECT_NE(error().find("cells.csv:2"), std::string::npos) << error();
}

TEST_F(GuaranteesTest, WithABrokenIndexAreRefused) {
  guarantees("configuration\ndmp\n");
  write("guarantees/tables.toml", "[[table]]\nname = \n");
  EXPECT_NE(error().find("tables.toml:2"), std::string::npos) << error();
  EXPECT_NE(error().find("run 'perdura guarantees' again"), std::string::npos) << error();
}

}  // namespace
}  // namespace perdura::report
