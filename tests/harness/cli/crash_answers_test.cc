// What `perdura crash` says of a system is never more than the committed explorations
// (explore/explored.csv) say, however little a look has tried, and its exit code says the same.
#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>
#include <vector>

#include "platform/base/json.h"
#include "tests/harness/cli/program.h"

namespace perdura {
namespace {

using Row = std::vector<std::string>;

// The rows of a CSV file whose quoted cells contain commas and no quotes.
std::vector<Row> rows_of(const std::string& path) {
  std::vector<Row> rows;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    Row& row = rows.emplace_back(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        row.emplace_back();
      } else {
        row.back() += c;
      }
    }
  }
  return rows;
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = rows_of(PERDURA_SOURCE_DIR "/explore/explored.csv");
  return rows;
}

// The arguments of `perdura crash` that mean the row "SYSTEM", "SYSTEM, persistence = correct",
// "SYSTEM, PARAMETER" or "SYSTEM, PARAMETER = VALUE".
std::string arguments_of(const std::string& row) {
  const std::size_t comma = row.find(", ");
  if (comma == std::string::npos) return row;
  const std::string system = row.substr(0, comma);
  const std::string setting = row.substr(comma + 2);
  const std::size_t equals = setting.find(" = ");
  if (equals == std::string::npos) return system + " --parameter " + setting + "=true";
  const std::string name = setting.substr(0, equals);
  const std::string value = setting.substr(equals + 3);
  if (name == "persistence") return system + " --persistence " + value;
  return system + " --parameter " + name + "=" + value;
}

int rank_of(const std::string& level) {
  const std::array<std::string, 6> weak_to_strong{"none",    "visible",        "atomic",
                                                  "ordered", "durable-writes", "durable"};
  return static_cast<int>(std::find(weak_to_strong.begin(), weak_to_strong.end(), level) -
                          weak_to_strong.begin());
}

class CrashAnswers : public testing::TestWithParam<std::size_t> {
 protected:
  // Compares the answers about the row, on all kinds of servers, with the table.
  void compare(const std::string& how_closely) const {
    const Row& header = table().front();
    const Row& row = table()[GetParam()];
    const Outcome outcome =
        shell(fmt::format("({} crash {} {} --json 2>/dev/null)", PERDURA_PROGRAM,
                          arguments_of(row.front()), how_closely));
    // A level that is declared, not explored, may be one that no exploration can tell.
    const bool promises_nothing = std::all_of(
        row.begin() + 1, row.end(), [](const std::string& cell) { return cell == "none"; });
    if (outcome.text.empty() && promises_nothing) GTEST_SKIP() << "no exploration can tell it";
    const auto answers = Json::parse(outcome.text);
    bool all_durable = true;
    ASSERT_EQ(answers.size(), header.size() - 1);
    for (const auto& answer : answers) {
      const std::string server = fmt::format("{} {}{}", answer["domain"].get<std::string>(),
                                             answer["ddio"].get<bool>() ? "ddio" : "no-ddio",
                                             answer["transport"] == "iwarp" ? " iwarp" : "");
      const auto column = std::find(header.begin(), header.end(), server) - header.begin();
      ASSERT_LT(column, static_cast<std::ptrdiff_t>(row.size())) << server;
      const std::string& cell = row[static_cast<std::size_t>(column)];
      if (answer.contains("refused")) {
        EXPECT_EQ("refused: " + answer["refused"].get<std::string>(), cell) << server;
        continue;
      }
      const auto guarantee = answer["guarantee"].get<std::string>();
      EXPECT_LE(rank_of(guarantee), rank_of(cell)) << row.front() << " on " << server;
      all_durable = all_durable && guarantee == "durable";
    }
    EXPECT_EQ(outcome.code, all_durable ? 0 : 1) << row.front();
  }
};

// The first moment alone, at which hardly anything can be lost.
TEST_P(CrashAnswers, OfTheWeakestLookSayNoMoreThanTheTable) { compare("--points 0"); }

TEST_P(CrashAnswers, OfTheUsualLookSayNoMoreThanTheTable) { compare(""); }

INSTANTIATE_TEST_SUITE_P(Rows, CrashAnswers, testing::Range<std::size_t>(1, table().size()),
                         [](const auto& row) {
                           std::string name = table()[row.param].front();
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

// What a reader of the terminal sees of a look that was not close enough.
TEST(CrashAnswer, SaysThatNothingWasFoundBesideWhatIsKnown) {
  const Outcome outcome = perdura("crash m-sync --domain wsp --ddio on --transport ib --points 0");
  EXPECT_EQ(outcome.code, 1);
  const std::string& text = outcome.text;
  EXPECT_TRUE(text.starts_with("m-sync on wsp ddio:          none            nothing found in "))
      << text;
  EXPECT_NE(text.find("none is known from the committed explorations, which looked closer "
                      "(explored.csv, revision "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("survive"), std::string::npos) << text;
}

// Which crash points were tried is told where not all were.
TEST(CrashAnswer, SaysWhichCrashPointsWereTried) {
  const std::string all =
      perdura("crash nova --domain dmp --ddio off --transport ib --points 0-3").text;
  EXPECT_NE(all.find("crash points 0 to 3 of each history, of "), std::string::npos) << all;
  const Outcome from = perdura("crash nova --domain dmp --ddio off --transport ib --points 1-3/2");
  EXPECT_NE(from.text.find("crash points 1 to 3, one in 2 of each history, of "), std::string::npos)
      << from.text;
}

// The same of histories that a strategy makes.
TEST(CrashAnswer, OfAStrategySaysNoMoreThanIsKnown) {
  const Outcome outcome =
      shell(fmt::format("({} crash m-sync --domain wsp --ddio on --transport ib --strategy "
                        "bounded:0 --histories 1 2>/dev/null)",
                        PERDURA_PROGRAM));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.text.starts_with("m-sync on wsp ddio: nothing found in ")) << outcome.text;
  EXPECT_EQ(outcome.text.find("durable"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace perdura
