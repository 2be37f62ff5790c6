#include "harness/schema/csv_table.h"

#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

using CsvTableTest = ReportTest;

TEST_F(CsvTableTest, LineNumbersCountBlankLinesAndLineEndsInsideCells) {
  write("a.csv", "x,y\n\n1,\"two\nlines\"\r\n3,4\n");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].line, 3u);
  EXPECT_EQ(table->rows[0].cells[1], "two\nlines");
  EXPECT_EQ(table->rows[1].line, 5u);
}

TEST_F(CsvTableTest, AnEmptyCellIsACell) {
  write("a.csv", "x,y,z\n1,,\n");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows[0].cells, (std::vector<std::string>{"1", "", ""}));
}

TEST_F(CsvTableTest, ALastLineWithoutLineEndCounts) {
  write("a.csv", "x,y\n1,2");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows.size(), 1u);
}

TEST_F(CsvTableTest, ARowThatWasCutOffIsNamedByItsLine) {
  write("a.csv", "x,y\n1,2\n3\n");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("a.csv:3: 1 cells where the header has 2; mend"),
            std::string::npos)
      << table.error().message;
}

TEST_F(CsvTableTest, AnOpenQuotationMarkIsAnError) {
  write("a.csv", "x,y\n1,2\n\"3,4\n");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("quotation mark"), std::string::npos);
}

TEST_F(CsvTableTest, AQuotedCellComesBackAsItWas) {
  const std::string text = "a \"b\", c\nd";
  write("a.csv", "x\n" + schema::csv_cell(text) + "\n");
  const auto table = schema::read_csv(root() / "a.csv");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows[0].cells[0], text);
}

TEST(ParseNumber, TakesAllOfTheTextOrNothing) {
  EXPECT_EQ(schema::parse_number("1.5e3"), 1500.0);
  EXPECT_TRUE(schema::parse_number("inf"));
  EXPECT_FALSE(schema::parse_number(""));
  EXPECT_FALSE(schema::parse_number("12 us"));
}

}  // namespace
}  // namespace perdura::report
