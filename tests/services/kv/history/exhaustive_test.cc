// The checker of keys against the one of any specification, on thousands of small random histories.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <ostream>

#include "services/kv/history/checker.h"
#include "services/kv/history/specification.h"
#include "tests/services/kv/history/builder.h"
#include "tests/services/kv/history/random_history.h"

namespace perdura::history::test {
namespace {

struct Comparison {
  const char* name;
  Shape shape;
  Promise::Undone undone = Promise::Undone::nothing;
};

std::ostream& operator<<(std::ostream& out, const Comparison& comparison) {
  return out << comparison.name;
}

std::string text(const History& history) {
  std::string text;
  for (const Operation& operation : history.operations()) {
    text +=
        fmt::format("{} {} v{} [{}, {}]\n", to_string(operation.kind), to_string(operation.outcome),
                    operation.version, operation.start.time_since_epoch().count(),
                    operation.end.time_since_epoch().count());
  }
  for (const Time failure : history.power_failures()) {
    text += fmt::format("power failure at {}\n", failure.time_since_epoch().count());
  }
  return text + (history.preloads().empty() ? "absent at first" : "version 100 at first");
}

class Compared : public testing::TestWithParam<Comparison> {};

INSTANTIATE_TEST_SUITE_P(
    All, Compared,
    testing::Values(
        Comparison{"PutsAndGets", {.operations = 10, .erases = 0}},
        Comparison{"WithDeletes", {.operations = 10, .puts = 3, .gets = 4, .erases = 3}},
        Comparison{"MostlyDeletes", {.operations = 10, .puts = 3, .gets = 3, .erases = 5}},
        Comparison{"MuchIsLost", {.operations = 10, .lost_of_ten = 5}},
        Comparison{"MuchAtOnce", {.operations = 10, .times = 8, .erases = 3, .lost_of_ten = 2}},
        Comparison{"DurableOverFailures", {.failures = 2}},
        Comparison{"PutsAndAFailure", {.operations = 9, .erases = 0, .failures = 1}, kLastVersion},
        Comparison{"AFailure", {.operations = 9, .failures = 1}, kLastVersion},
        Comparison{"TwoFailures", {.operations = 8, .failures = 2}, kLastVersion},
        Comparison{"FailuresAndLosses",
                   {.operations = 8, .times = 12, .failures = 2, .lost_of_ten = 4},
                   kLastVersion}),
    [](const auto& test) { return test.param.name; });

TEST_P(Compared, AgreesWithTheSpecification) {
  const Comparison& comparison = GetParam();
  constexpr std::uint64_t kHistories = 20000;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    std::mt19937_64 random(seed);
    const History history = RandomHistory(random, comparison.shape).make();
    const Promise promise{.undone = comparison.undone};
    services::KeySpecification key{.promise = promise};
    for (const auto& preload : history.preloads()) key.at_first = preload.version;
    const auto calls = services::calls_of(history);
    const auto defined = check_linearizability(key, std::span(calls), history.power_failures());
    ASSERT_NE(defined.decision, services::Linearizability::Decision::undecided);
    const bool expected = defined.accepted();
    const CheckResult verdict = check(history, promise);
    ASSERT_EQ(verdict.keys_undecided, 0U);
    ASSERT_EQ(verdict.accepted(), expected) << "seed " << seed << ", " << comparison.name << "\n"
                                            << text(history) << "\n"
                                            << describe(verdict);
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(accepted, kHistories / 5);
  EXPECT_LT(accepted, kHistories * 9 / 10);
}

}  // namespace
}  // namespace perdura::history::test
