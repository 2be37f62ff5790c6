// The tables of what is proven, beside the figures of what was measured.
#include "report/guarantees.h"

#include <fmt/format.h>

#include "harness/schema/columns.h"
#include "services/guarantee.h"
#include "tests/report/fixture.h"

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

TEST_F(GuaranteesTest, ThatLostARowAreRefused) {
  GuaranteeTable table{"cells", "Cells", "Each.", true, {}};
  table.cells.header = {"configuration", "single"};
  table.cells.rows = {{0, {"dmp", "right"}}, {0, {"mhp", "lost"}}};
  std::filesystem::create_directories(root() / "guarantees");
  ASSERT_TRUE(write_guarantees(root() / "guarantees", {table}));
  write("guarantees/cells.csv", "configuration,single\ndmp,right\n");
  const std::string refused = error();
  EXPECT_NE(refused.find("cells.csv: is not what was written: it has 1 row, "), std::string::npos)
      << refused;
  EXPECT_NE(refused.find(", and tables.toml says 2 rows, "), std::string::npos) << refused;
  EXPECT_TRUE(refused.ends_with("; run 'perdura guarantees' again")) << refused;
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

TEST_F(GuaranteesTest, WithAWrongValueInTheIndexAreRefused) {
  guarantees("configuration\ndmp\n");
  const auto refused = [&](const std::string& index) {
    write("guarantees/tables.toml", index);
    const std::string message = error();
    EXPECT_TRUE(message.ends_with("; run 'perdura guarantees' again")) << message;
    return message.substr(message.find("tables.toml"));
  };
  EXPECT_EQ(refused("table = [1]\n").find("tables.toml:1: table must be written as [[table]]"), 0U);
  EXPECT_EQ(refused("[[table]]\nname = 5\n").find("tables.toml:2: name in [table] must be text"),
            0U);
  EXPECT_EQ(refused("[[table]]\nname = \"../cells\"\n").find("tables.toml:2: name in [table]"), 0U);
  EXPECT_EQ(refused("[[tables]]\n").find("tables.toml:1: unknown key 'tables'"), 0U);
  EXPECT_EQ(refused("").find("tables.toml: is empty"), 0U);
}

// Reports know the words of results, and services those of what they guarantee.
TEST(GuaranteeWords, AreThoseOfServicesInTheirOrder) {
  std::vector<std::string_view> words;
  for (const schema::Spelling& word : schema::guarantee_words()) words.push_back(word.value);
  EXPECT_EQ(words, std::vector<std::string_view>(services::kGuaranteeWords.begin(),
                                                 services::kGuaranteeWords.end()));
}

class LegendTest : public ReportTest {
 protected:
  /// A page of the three systems; what the rows of the first two say, by value size 16 and 64.
  std::string page_of(const std::vector<std::string>& erda, const std::vector<std::string>& redo) {
    std::vector<Cells> rows = latency_rows();
    for (std::size_t i = 0; i < 2; ++i) {
      rows[i]["guarantee"] = erda[i];
      rows[2 + i]["guarantee"] = redo[i];
    }
    result("run", rows, latency_figure("14"));
    return page();
  }
  std::size_t in_legend(const std::string& text) {
    return count(read("report/figures/14.svg"), ">" + text + "<");
  }
};

TEST_F(LegendTest, SaysWhatEachSeriesGuaranteesIfTheyDiffer) {
  const std::string html = page_of({"none", "none"}, {"durable", "durable"});
  EXPECT_EQ(in_legend("Erda (none)"), 1U);
  EXPECT_EQ(in_legend("Redo Logging (durable)"), 1U);
  EXPECT_EQ(in_legend("Read After Write"), 1U) << "nothing is known of it";
  EXPECT_EQ(count(html, "<a href=\"#guarantees\">guarantee different things"), 1U);
  EXPECT_EQ(count(html, "<h2 id=\"guarantees\">"), 1U);
  for (const std::string_view word : services::kGuaranteeWords) {
    EXPECT_EQ(count(html, fmt::format("<li><b>{}</b>: ", word)), 1U) << "the words are explained";
  }
}

TEST_F(LegendTest, SaysNothingIfTheyDoNotDiffer) {
  for (const std::string second : {"durable", ""}) {
    const std::string html = page_of({"durable", "durable"}, {second, second});
    EXPECT_EQ(in_legend("Erda"), 1U);
    EXPECT_EQ(in_legend("Redo Logging"), 1U);
    EXPECT_EQ(count(html, "guarantees"), 0U);
  }
}

TEST_F(LegendTest, ASeriesMayGuaranteeDifferentThings) {
  page_of({"durable", "durable-writes"}, {"durable", "durable"});
  EXPECT_EQ(in_legend("Erda (durable-writes/durable)"), 1U);
}

// "durable" is proven of the method with FLUSH, so the page must not say it of READ in its place.
TEST_F(LegendTest, TheGuaranteeOfAMethodWithFlushIsNotToldOfReadInItsPlace) {
  std::vector<Cells> rows = latency_rows();
  const auto notes = [&](const std::string& method, const std::string& persistence) {
    rows[0]["guarantee"] = "durable";
    rows[0]["method"] = method;
    rows[0]["persistence"] = persistence;
    result("run", rows, latency_figure("14"));
    const std::string html = page();
    return std::pair(count(html, "guarantee is\nthat of the method with FLUSH"),
                     count(html, ">with FLUSH, for which READ stood<"));
  };
  EXPECT_EQ(notes("ordered-write-atomic (read)", ""), std::pair(1UL, 1UL));
  EXPECT_EQ(notes("ordered-write-atomic", ""), std::pair(0UL, 0UL));
  EXPECT_EQ(notes("write-flush (read)", "correct"), std::pair(0UL, 0UL))
      << "the guarantee of what was run";
}

TEST_F(LegendTest, AWordThatIsNoneIsRefused) {
  std::vector<Cells> rows = latency_rows();
  rows[1]["guarantee"] = "solid";
  result("run", rows, latency_figure("14"));
  EXPECT_NE(error().find("points.csv:3: guarantee is 'solid'"), std::string::npos) << error();
}

}  // namespace
}  // namespace perdura::report
