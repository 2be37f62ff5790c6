// Which rows meet, and what is refused.
#include "report/compare/matching.h"

#include <algorithm>
#include <array>

#include "harness/schema/columns.h"
#include "tests/report/fixture.h"

namespace perdura::compare {
namespace {

using report::Cells;
using report::measured;

class MatchingTest : public report::ReportTest {
 protected:
  std::vector<std::filesystem::path> points(const std::vector<std::vector<Cells>>& folders) {
    std::vector<std::filesystem::path> files;
    for (const auto& rows : folders) {
      const std::string name = std::to_string(++files_) + ".csv";
      write(name, report::points_csv(rows));
      files.push_back(root() / name);
    }
    return files;
  }

  schema::Expected<Matching> matched(const std::vector<Cells>& a, const std::vector<Cells>& b,
                                     const std::vector<std::string>& quantities = {
                                         "latency_mean_us"}) {
    return match(points({a}), points({b}), quantities);
  }

  static Cells latency(const std::string& value, Cells more = {}) {
    more["latency_mean_us"] = value;
    return more;
  }

 private:
  std::size_t files_ = 0;
};

TEST_F(MatchingTest, RowsThatDifferInSeedOrRepetitionAreSamplesOfOnePoint) {
  const auto a = points({{latency("1"), latency("2", {{"repetition", "1"}, {"seed", "8"}})},
                         {latency("3", {{"seed", "9"}})}});
  const auto b = points({{latency("4")}});
  const auto matching = match(a, b, {"latency_mean_us"});
  ASSERT_TRUE(matching) << matching.error().message;
  ASSERT_EQ(matching->pairs.size(), 1U);
  EXPECT_EQ(matching->pairs[0].a, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(matching->pairs[0].b, (std::vector<double>{4}));
  EXPECT_TRUE(matching->modelled);
  EXPECT_TRUE(matching->unmatched.empty());
}

// Every other column that identifies a point keeps its rows apart, alone.
TEST_F(MatchingTest, EveryColumnOfAPointKeepsRowsApart) {
  for (const std::string_view column : point_columns()) {
    const std::string name(column);
    const bool is_number = schema::find_column(column)->kind == schema::Column::Kind::number;
    Cells other = latency("2", {{name, is_number ? "77" : "other"}});
    Cells same = latency("1");
    if (name == "platform") {
      other = measured(latency("2", {{"platform", "verbs"}}));
      same = measured(same);
    }
    const auto matching = matched({same, other}, {same});
    ASSERT_TRUE(matching) << matching.error().message;
    EXPECT_EQ(matching->pairs.size(), 1U) << name;
    ASSERT_EQ(matching->unmatched.size(), 1U) << name;
    EXPECT_EQ(matching->unmatched[0].side, Side::a);
    const auto columns = point_columns();
    const auto at = std::find(columns.begin(), columns.end(), column);
    EXPECT_EQ(matching->unmatched[0].point[static_cast<std::size_t>(at - columns.begin())],
              name == "platform" ? "verbs"
              : is_number        ? "77"
                                 : "other");
  }
}

TEST_F(MatchingTest, WhatOneRunLacksIsListed) {
  const auto matching =
      matched({latency("1"), latency("1", {{"operation", "read"}, {"latency_p50_us", "3"}})},
              {latency("1"), latency("1", {{"operation", "read"}}),
               latency("1", {{"system", "redo-logging"}})},
              {"latency_mean_us", "latency_p50_us"});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_EQ(matching->pairs.size(), 2U);
  ASSERT_EQ(matching->unmatched.size(), 2U);
  EXPECT_EQ(matching->unmatched[0].side, Side::a);
  EXPECT_EQ(matching->unmatched[0].quantity, "latency_p50_us");
  EXPECT_EQ(matching->unmatched[1].side, Side::b);
  EXPECT_EQ(matching->unmatched[1].quantity, "");
}

TEST_F(MatchingTest, RowsThatAreNotValidAreListedAndNotCompared) {
  const Cells failed =
      latency("9", {{"repetition", "1"}, {"verdict", "failed"}, {"reason", "full"}});
  const Cells invalid = latency("9", {{"system", "redo-logging"}, {"verdict", "invalid"}});
  const auto matching = matched({latency("1"), failed, latency("1", {{"system", "redo-logging"}})},
                                {latency("2"), invalid});
  ASSERT_TRUE(matching) << matching.error().message;
  ASSERT_EQ(matching->pairs.size(), 1U);
  EXPECT_EQ(matching->pairs[0].a, (std::vector<double>{1}));
  ASSERT_EQ(matching->not_valid.size(), 2U);
  EXPECT_EQ(matching->not_valid[0].side, Side::a);
  EXPECT_EQ(matching->not_valid[0].repetition, "1");
  EXPECT_EQ(matching->not_valid[0].verdict, "failed");
  EXPECT_EQ(matching->not_valid[0].reason, "full");
  EXPECT_EQ(matching->not_valid[1].side, Side::b);
  EXPECT_TRUE(matching->unmatched.empty()) << "listed once is enough";
}

TEST_F(MatchingTest, PointsOfAHostThatWasNotQuietAreComparedAndListed) {
  const auto row = [](const char* repetition, const char* noise) {
    return measured(latency("1", {{"repetition", repetition}, {"noise", noise}}));
  };
  const auto matching =
      matched({row("0", "quiet"), row("1", "crowded"), row("2", "disturbed")}, {row("0", "quiet")});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_EQ(matching->pairs.at(0).a.size(), 3U);
  ASSERT_EQ(matching->noisy.size(), 1U);
  EXPECT_EQ(matching->noisy[0].side, Side::a);
  EXPECT_EQ(matching->noisy[0].noisy, 2U);
  EXPECT_EQ(matching->noisy[0].valid, 3U);
  EXPECT_EQ(matching->noisy[0].noise, "crowded");
}

TEST_F(MatchingTest, ADamagedFileIsRefused) {
  const auto sound = points({{latency("1")}});
  write("damaged.csv", report::points_csv({latency("1")}) + "4,x\n");
  const auto matching = match(sound, {root() / "damaged.csv"}, {"latency_mean_us"});
  ASSERT_FALSE(matching);
  EXPECT_NE(matching.error().message.find("damaged.csv:3: 2 cells where the header has"),
            std::string::npos)
      << matching.error().message;
}

TEST_F(MatchingTest, ACopyOfARowIsNoRepetition) {
  const Cells row = latency("1");
  const auto copies = points({{latency("1", {{"repetition", "1"}}), row}, {row}});
  const auto once = points({{row}});
  for (const bool in_b : {false, true}) {
    const auto matching =
        in_b ? match(once, copies, {"latency_mean_us"}) : match(copies, once, {"latency_mean_us"});
    ASSERT_FALSE(matching);
    EXPECT_TRUE(matching.error().message.starts_with(copies[0].string() + ":3 and " +
                                                     copies[1].string() +
                                                     ":2 are the same row, of the same seed and"))
        << matching.error().message;
  }
  // What differs anywhere was measured again; what failed has nothing to differ in.
  EXPECT_TRUE(match(points({{row}, {latency("1.5")}}), once, {"latency_mean_us"}));
  const Cells failed = latency("1", {{"verdict", "failed"}, {"system", "redo-logging"}});
  EXPECT_TRUE(match(points({{row, failed}, {failed}}), once, {"latency_mean_us"}));
}

TEST_F(MatchingTest, KnowsWhetherBothHaveTheSameSeedsAndRepetitions) {
  const auto rows = [](const std::vector<std::pair<const char*, const char*>>& draws) {
    std::vector<Cells> made;
    for (const auto& [seed, repetition] : draws) {
      made.push_back(latency("1", {{"seed", seed}, {"repetition", repetition}}));
    }
    return made;
  };
  const auto same = [&](const auto& a, const auto& b) {
    const auto matching = matched(rows(a), rows(b));
    EXPECT_TRUE(matching) << matching.error().message;
    return matching->pairs.at(0).same_draws;
  };
  using Draws = std::vector<std::pair<const char*, const char*>>;
  EXPECT_TRUE(same(Draws{{"1", "0"}, {"1", "1"}}, Draws{{"1", "1"}, {"1", "0"}}));
  EXPECT_FALSE(same(Draws{{"1", "0"}}, Draws{{"2", "0"}}));
  EXPECT_FALSE(same(Draws{{"1", "0"}}, Draws{{"1", "1"}}));
  EXPECT_FALSE(same(Draws{{"1", "0"}, {"1", "1"}}, Draws{{"1", "0"}}));
}

/// The numbers of a Lost: valid in A, not valid in A, the same of B.
using Counts = std::array<std::size_t, 4>;
Counts counts(const Lost& lost) {
  return {lost.valid_a, lost.not_valid_a, lost.valid_b, lost.not_valid_b};
}

// Up to three repetitions of each run, each of them valid or not: lost is what is valid in A, and
// in B is not there or not valid more often.
TEST_F(MatchingTest, PointsThatFailMoreOftenOrAreMissingAreLost) {
  const auto rows = [](std::size_t valid, std::size_t not_valid) {
    std::vector<Cells> made{latency("1", {{"system", "other"}})};
    for (std::size_t i = 0; i < valid + not_valid; ++i) {
      made.push_back(latency("1", {{"repetition", std::to_string(i)},
                                   {"verdict", i < valid ? "valid"
                                               : i % 2   ? "failed"
                                                         : "invalid"}}));
    }
    return made;
  };
  for (std::size_t valid_a = 0; valid_a <= 2; ++valid_a) {
    for (std::size_t not_valid_a = 0; not_valid_a <= 2; ++not_valid_a) {
      for (std::size_t valid_b = 0; valid_b <= 2; ++valid_b) {
        for (std::size_t not_valid_b = 0; not_valid_b <= 2; ++not_valid_b) {
          const Counts made{valid_a, not_valid_a, valid_b, not_valid_b};
          SCOPED_TRACE(testing::PrintToString(made));
          const auto matching = matched(rows(valid_a, not_valid_a), rows(valid_b, not_valid_b));
          ASSERT_TRUE(matching) << matching.error().message;
          const auto part = [](std::size_t valid, std::size_t not_valid) {
            return static_cast<double>(not_valid) / static_cast<double>(valid + not_valid);
          };
          const bool lost =
              valid_a > 0 && (valid_b + not_valid_b == 0 ||
                              part(valid_b, not_valid_b) > part(valid_a, not_valid_a) + 1e-9);
          ASSERT_EQ(matching->lost.size(), lost ? 1U : 0U);
          if (!lost) continue;
          EXPECT_EQ(counts(matching->lost[0]), made);
          EXPECT_EQ(matching->lost[0].missing(), valid_b + not_valid_b == 0);
        }
      }
    }
  }
}

TEST_F(MatchingTest, PointsThatOnlyBHasAndKindsThatItLacksAreNotLost) {
  const auto matching = matched({latency("1"), latency("1", {{"operation", "read"}})},
                                {latency("1"), latency("1", {{"system", "redo-logging"}})});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_TRUE(matching->lost.empty());
  EXPECT_EQ(matching->unmatched.size(), 2U);
}

// A run that lost everything is not one of another experiment.
TEST_F(MatchingTest, ARunThatLostEverythingIsNoMistake) {
  const auto none = matched({latency("1")}, {});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->lost.size(), 1U);
  const auto failed = matched({latency("1")}, {latency("1", {{"verdict", "failed"}})});
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->lost.size(), 1U);
}

TEST_F(MatchingTest, ModelledAndMeasuredAreNeverSetBesideEachOther) {
  for (const bool second : {false, true}) {
    const auto a = points({{latency("1")}});
    const auto b = points(
        {{latency("1"), second ? measured(latency("1")) : latency("1", {{"repetition", "1"}})},
         {measured(latency("1"))}});
    const auto matching = match(a, b, {"latency_mean_us"});
    ASSERT_FALSE(matching);
    EXPECT_NE(matching.error().message.find("is measured; compare runs of the same platform"),
              std::string::npos)
        << matching.error().message;
  }
  const auto matching = matched({measured(latency("1"))}, {measured(latency("1"))});
  ASSERT_TRUE(matching) << matching.error().message;
  EXPECT_FALSE(matching->modelled);
}

TEST_F(MatchingTest, RunsWithoutAPointInCommonAreRefused) {
  const auto matching = matched({latency("1")}, {latency("1", {{"clients", "9"}})});
  ASSERT_FALSE(matching);
  EXPECT_TRUE(matching.error().message.starts_with(
      "no valid point with latency_mean_us is in both runs (1 only in A, 1 only in B"))
      << matching.error().message;
}

// A stall shows in response times above all, so a comparison looks at them unless told otherwise.
TEST_F(MatchingTest, ResponseTimesOfAnOpenLoopAreCompared) {
  const auto open_loop = [](const std::string& response) {
    return latency("1", {{"load", "poisson"},
                         {"offered_load", "1000"},
                         {"response_mean_us", response},
                         {"response_p50_us", response},
                         {"response_p99_us", response}});
  };
  const auto matching = matched({open_loop("5"), latency("1")}, {open_loop("500"), latency("1")},
                                default_quantities());
  ASSERT_TRUE(matching) << matching.error().message;
  std::vector<std::string> compared;
  for (const Pair& pair : matching->pairs) {
    if (!pair.quantity.starts_with("response_")) continue;
    compared.push_back(pair.quantity);
    EXPECT_EQ(pair.a, std::vector<double>{5});
    EXPECT_EQ(pair.b, std::vector<double>{500});
  }
  EXPECT_EQ(compared,
            (std::vector<std::string>{"response_mean_us", "response_p50_us", "response_p99_us"}))
      << "each of the open loop only";
  EXPECT_TRUE(matching->unmatched.empty()) << "a closed loop has none to lack";
  for (const std::string_view column : {"response_p999_us", "response_max_us"}) {
    const auto known = comparable_quantities();
    EXPECT_NE(std::find(known.begin(), known.end(), column), known.end()) << column;
  }
}

TEST_F(MatchingTest, WhoeverIsToldOfTheReadingMayEndIt) {
  struct Enough {};
  const auto a = points({{latency("1")}});
  const auto b = points({{latency("1")}});
  std::vector<std::filesystem::path> told;
  ASSERT_TRUE(match(a, b, {"latency_mean_us"}, [&](const auto& file) { told.push_back(file); }));
  EXPECT_EQ(told, a) << "the first of so few rows";
  EXPECT_THROW(match(a, b, {"latency_mean_us"}, [](const auto&) { throw Enough(); }), Enough);
}

TEST_F(MatchingTest, WhatCannotBeComparedIsRefused) {
  for (const std::string quantity :
       {"latency_p50_low_us", "latency_p50_high_us", "operations", "elapsed_s", "nosuch", ""}) {
    const auto matching = matched({latency("1")}, {latency("1")}, {quantity});
    ASSERT_FALSE(matching) << quantity;
    EXPECT_TRUE(matching.error().message.starts_with("unknown quantity '" + quantity +
                                                     "'; known are: throughput_ops_s, latency_"))
        << matching.error().message;
  }
  const auto twice =
      matched({latency("1")}, {latency("1")}, {"latency_mean_us", "latency_mean_us"});
  ASSERT_FALSE(twice) << "its samples would count twice";
  EXPECT_EQ(twice.error().message, "quantity 'latency_mean_us' is given twice; give it once");
  for (const std::string& quantity : default_quantities()) {
    const auto known = comparable_quantities();
    EXPECT_NE(std::find(known.begin(), known.end(), quantity), known.end()) << quantity;
  }
}

}  // namespace
}  // namespace perdura::compare
