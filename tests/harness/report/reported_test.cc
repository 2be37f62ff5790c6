#include "harness/report/reported.h"

#include <cmath>

#include "tests/harness/report/fixture.h"

namespace perdura::report {
namespace {

TEST(ReportedErda, Section5_2StatesTheAverageLatencies) {
  const auto paper = read_reported(PERDURA_REPORTED, "erda");
  ASSERT_TRUE(paper) << paper.error().message;
  EXPECT_EQ(paper->find("14", "absolute", "workloadc", "erda")->number, 62.84);
  EXPECT_EQ(paper->find("14", "absolute", "workloadc", "redo-logging")->number, 92.7);
  EXPECT_EQ(paper->find("17", "absolute", "update-only", "read-after-write")->number, 105.47);
}

// Section 5.3: "the average throughputs … are approximate"; there is no number to quote.
TEST(ReportedErda, Section5_3StatesNoNumberForUpdateOnly) {
  const auto paper = read_reported(PERDURA_REPORTED, "erda");
  ASSERT_TRUE(paper) << paper.error().message;
  EXPECT_EQ(paper->find("21", "absolute", "update-only", "erda"), nullptr);
}

TEST(ReportedErda, Section5_4StatesOneAverageForFourFigures) {
  const auto paper = read_reported(PERDURA_REPORTED, "erda");
  ASSERT_TRUE(paper) << paper.error().message;
  for (const char* figure : {"22", "23", "24", "25", "22-25"}) {
    EXPECT_EQ(paper->find(figure, "ratio", "workloadb", "redo-logging")->number, 20.09) << figure;
  }
  EXPECT_EQ(paper->find("26", "ratio", "workloadb", "redo-logging"), nullptr);
  EXPECT_TRUE(std::isinf(paper->find("22", "ratio", "workloadc", "redo-logging")->number));
}

TEST(ReportedErda, Table1HasAFormulaForEachSystemAndOperation) {
  const auto paper = read_reported(PERDURA_REPORTED, "erda");
  ASSERT_TRUE(paper) << paper.error().message;
  for (const char* workload : {"create-only", "update-only", "delete-only"}) {
    for (const char* system : {"erda", "redo-logging", "read-after-write"}) {
      EXPECT_NE(paper->find("Table 1", "formula", workload, system), nullptr) << workload << system;
    }
  }
}

using ReportedTest = ReportTest;

TEST_F(ReportedTest, AValueThatIsNoNumberIsNamedByItsLine) {
  write("p.csv",
        "paper,section,figure,quantity,workload,system,value,unit,kind,note\n"
        "p,1,2,latency,w,s,fast,us,absolute,\n");
  const auto paper = read_reported(root(), "p");
  ASSERT_FALSE(paper);
  EXPECT_NE(paper.error().message.find("p.csv:2: value is 'fast'"), std::string::npos)
      << paper.error().message;
}

TEST_F(ReportedTest, NotesNameTheirFigures) {
  write("p.csv", "paper,section,figure,quantity,workload,system,value,unit,kind,note\n");
  write("p-notes.toml", "[[note]]\nfigures = [\"14\", \"15\"]\ntext = \"Why.\"\n");
  const auto paper = read_reported(root(), "p");
  ASSERT_TRUE(paper) << paper.error().message;
  ASSERT_EQ(paper->notes.size(), 1u);
  EXPECT_EQ(paper->notes[0].figures, (std::vector<std::string>{"14", "15"}));
}

}  // namespace
}  // namespace perdura::report
