#include "report/reported.h"

#include <cmath>

#include "tests/harness/declarations.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

using Kind = Claim::Kind;

class ReportedErda : public testing::Test {
 protected:
  void SetUp() override {
    auto papers = read_papers(PERDURA_CLAIMS, PERDURA_NOTES, {"erda"}, OtherPapers::leave_out);
    ASSERT_TRUE(papers) << papers.error().message;
    ASSERT_EQ(papers->size(), 1U);
    paper_ = std::move(papers->at("erda"));
  }
  ReportedPaper paper_;
};

TEST_F(ReportedErda, Section5_2StatesTheAverageLatencies) {
  EXPECT_EQ(paper_.find("14", Kind::exact, "workloadc", "erda")->number, 62.84);
  EXPECT_EQ(paper_.find("14", Kind::exact, "workloadc", "redo-logging")->number, 92.7);
  EXPECT_EQ(paper_.find("17", Kind::exact, "update-only", "read-after-write")->number, 105.47);
}

// Section 5.3: "the average throughputs … are approximate"; there is no number to quote.
TEST_F(ReportedErda, Section5_3StatesNoNumberForUpdateOnly) {
  EXPECT_EQ(paper_.find("21", Kind::exact, "update-only", "erda"), nullptr);
}

TEST_F(ReportedErda, Section5_4StatesOneAverageForFourFigures) {
  for (const char* figure : {"22", "23", "24", "25", "22-25"}) {
    EXPECT_EQ(paper_.find(figure, Kind::ratio, "workloadb", "redo-logging")->number, 20.09)
        << figure;
  }
  EXPECT_EQ(paper_.find("26", Kind::ratio, "workloadb", "redo-logging"), nullptr);
  EXPECT_TRUE(std::isinf(paper_.find("22", Kind::ratio, "workloadc", "redo-logging")->number));
}

TEST_F(ReportedErda, Table1HasAFormulaForEachSystemAndOperation) {
  for (const char* workload : {"create-only", "update-only", "delete-only"}) {
    for (const char* system : {"erda", "redo-logging", "read-after-write"}) {
      EXPECT_NE(paper_.find("Table 1", Kind::exact, workload, system), nullptr)
          << workload << system;
    }
  }
}

// profiles/erda-connectx3.toml names two numbers of Figure 14. What is measured of YCSB-C, and of
// YCSB-B, 19 of 20 operations of which are the same, follows from them.
TEST_F(ReportedErda, WhatFollowsFromAFittedNumberIsNoPrediction) {
  for (const Claim& claim : paper_.claims) {
    if (!claim.not_covered.empty() || claim.system.empty()) continue;
    const bool follows = claim.figure == "14" || claim.figure == "15" || claim.figure == "18" ||
                         claim.figure == "19";
    EXPECT_EQ(claim.basis == Claim::Basis::fitted, follows) << claim.id;
  }
}

class ReportedTest : public ReportTest {
 protected:
  /// Writes claims of two papers, p and q, and these notes on p.
  schema::Expected<Papers> papers(const std::set<std::string>& names, OtherPapers others,
                                  const std::string& notes = "") {
    Cells of_q = number_claim("14", "w", "s", "2");
    of_q["paper"] = "q";
    write("claims.csv",
          claims_csv({number_claim("14", "w", "s", "1"), of_q, number_claim("22-25", "w", "s", "3"),
                      number_claim("Table 1", "w", "s", "key + 3")}));
    if (!notes.empty()) write("p-notes.toml", notes);
    return read_papers(root() / "claims.csv", root(), names, others);
  }
};

TEST_F(ReportedTest, PapersThatNobodyNamesAreReadIfWanted) {
  EXPECT_EQ(papers({"p"}, OtherPapers::leave_out)->size(), 1U);
  EXPECT_EQ(papers({"p"}, OtherPapers::read_too)->size(), 2U);
  EXPECT_EQ(papers({}, OtherPapers::read_too)->at("p").claims.size(), 3U);
}

TEST_F(ReportedTest, APaperWithoutClaimsIsNamed) {
  const auto read = papers({"unwritten"}, OtherPapers::read_too);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("there is nothing of paper 'unwritten'"), std::string::npos)
      << read.error().message;
}

TEST_F(ReportedTest, NotesNameTheirFiguresOrTheirClaims) {
  const auto read = papers({"p"}, OtherPapers::leave_out,
                           "[[note]]\nfigures = [\"14\", \"15\"]\ntext = \"Why.\"\n"
                           "[[note]]\nfigures = [\"1\"]\ntext = \"Bytes.\"\n"
                           "[[note]]\nclaims = [\"c3\"]\nfigures = [\"14\"]\ntext = \"CPU.\"\n");
  ASSERT_TRUE(read) << read.error().message;
  const ReportedPaper& paper = read->at("p");
  ASSERT_EQ(paper.notes.size(), 3U);
  EXPECT_EQ(paper.notes[0].figures, (std::vector<std::string>{"14", "15"}));
  using Notes = std::vector<std::size_t>;
  EXPECT_EQ(paper.notes_on(paper.claims[0]), (Notes{0, 2})) << "its figure's";
  EXPECT_EQ(paper.notes_on(paper.claims[1]), Notes{2}) << "its own";
  EXPECT_EQ(paper.notes_on(paper.claims[2]), Notes{1}) << "its table's";
}

TEST_F(ReportedTest, ABrokenNoteIsNamedByItsLine) {
  const auto read = papers({"p"}, OtherPapers::leave_out, "[[note]]\nfigures = []\n");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("p-notes.toml:1: text in [note] is missing; add text"),
            std::string::npos);
}

TEST_F(ReportedTest, AWrongValueInANoteIsNamedByItsLine) {
  for (const auto& [notes, message] :
       {std::pair{"title = 5\n", "p-notes.toml:1: title must be text in quotes, but is 5; mend"},
        std::pair{"note = 5\n", "p-notes.toml:1: note must be written as [[note]], but is 5; mend"},
        std::pair{"[[note]]\ntext = \"a\"\nfigures = [5]\n",
                  "p-notes.toml:3: figures in [note] must be text in quotes, but is 5; mend"},
        std::pair{"[[note]]\ntext = \"a\"\nfigure = [\"5\"]\n",
                  "p-notes.toml:3: unknown key 'figure' in [note] (did you mean 'figures'?)"}}) {
    const auto read = papers({"p"}, OtherPapers::leave_out, notes);
    ASSERT_FALSE(read) << notes;
    EXPECT_NE(read.error().message.find(message), std::string::npos) << read.error().message;
  }
}

// A note that no figure or table leads to would stand on the page without a heading.
TEST(CommittedNotes, AreEachOnAFigureOrTableOfAnExperiment) {
  std::set<std::pair<std::string, std::string>> shown;  // paper, id
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PERDURA_EXPERIMENTS)) {
    if (entry.path().extension() != ".toml") continue;
    const auto specs = schema::read_specs(entry.path(), perdura::test::declarations().columns);
    ASSERT_TRUE(specs) << specs.error().message;
    const auto add = [&](const schema::DataSpec& spec) {
      if (spec.paper.empty()) return;
      shown.emplace(spec.paper, spec.id);
      names.insert(spec.paper);
    };
    std::for_each(specs->figures.begin(), specs->figures.end(), add);
    std::for_each(specs->tables.begin(), specs->tables.end(), add);
  }
  const auto papers = read_papers(PERDURA_CLAIMS, PERDURA_NOTES, names, OtherPapers::leave_out);
  ASSERT_TRUE(papers) << papers.error().message;
  for (const auto& [name, paper] : *papers) {
    for (const auto& note : paper.notes) {
      const auto leads = [&](const std::string& id) { return shown.contains({name, id}); };
      EXPECT_TRUE(note.figures.empty() ||
                  std::any_of(note.figures.begin(), note.figures.end(), leads))
          << name << ": " << note.text;
    }
  }
}

}  // namespace
}  // namespace perdura::report
