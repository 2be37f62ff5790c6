// The verdicts on registers against the plainest way to get them, on every small history in which
// values repeat, and on larger ones at random.
#include "services/kv/history/register.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "services/kv/history/checker.h"
#include "tests/services/kv/history/brute_force.h"
#include "tests/services/kv/history/builder.h"
#include "tests/services/kv/history/random_history.h"
#include "tests/support/seed.h"

namespace perdura::history::test {
namespace {

using Action = RegisterOperation::Action;
using Calls = std::vector<services::Call<RegisterOperation>>;
using Decision = services::Linearizability::Decision;

// What the operations of these tests may be, by small numbers; 0 is an absent value.
struct Plain {
  Action action;
  int expected;
  int value;
};
constexpr auto kPlain = std::to_array<Plain>({
    {Action::write, 0, 1},
    {Action::write, 0, 2},
    {Action::read, 0, 1},
    {Action::read, 0, 2},
    {Action::compare_set, 1, 2},
    {Action::read, 0, 0},
    {Action::compare_set, 2, 1},
    {Action::compare_failed, 1, 0},
    {Action::erase, 0, 0},
});

// An operation and its interval, in steps of one event.
struct Timed {
  Plain what;
  int start;
  int end;
  bool answered;
};

// Whether an operation may come next, and what the register holds then; -1 if it may not.
int after(int holds, const Plain& what) {
  switch (what.action) {
    case Action::read:
      return holds == what.value ? holds : -1;
    case Action::write:
      return what.value;
    case Action::compare_set:
      return holds == what.expected ? what.value : -1;
    case Action::compare_failed:
      return holds != what.expected ? holds : -1;
    case Action::erase:
      return holds != 0 ? 0 : -1;
    case Action::append:
      break;
  }
  return -1;
}

// Tries every order that the times allow.
bool some_order(const std::vector<Timed>& operations, unsigned placed, int holds) {
  bool all = true;
  int first_end = 1 << 20;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if ((placed >> i & 1U) != 0 || !operations[i].answered) continue;
    all = false;
    first_end = std::min(first_end, operations[i].end);
  }
  if (all) return true;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if ((placed >> i & 1U) != 0 || operations[i].start > first_end) continue;
    const int then = after(holds, operations[i].what);
    if (then >= 0 && some_order(operations, placed | 1U << i, then)) return true;
  }
  return false;
}

Decision decided(const std::vector<Timed>& operations, std::size_t configurations = 1 << 20) {
  RegisterHistory history;
  history.begins_empty = true;
  const auto id = [&](int value) {
    return value == 0 ? RegisterValues::kAbsent : history.values.id_of(std::to_string(value));
  };
  for (const Timed& each : operations) {
    history.registers[""].push_back({.operation = {.action = each.what.action,
                                                   .value = id(each.what.value),
                                                   .expected = id(each.what.expected)},
                                     .start = Time(Picoseconds(each.start)),
                                     .end = Time(Picoseconds(each.end)),
                                     .answered = each.answered});
  }
  return check_registers(history, {.at_first = {}, .configurations = configurations}).decision;
}

// Calls `use` with every order of beginnings and ends of so many operations, which begin in the
// order of their numbers: pairs of times.
void for_each_interval(std::size_t operations,
                       const std::function<void(const std::vector<std::pair<int, int>>&)>& use) {
  std::vector<std::pair<int, int>> times;
  const auto extend = [&](const auto& self, int now, std::size_t ended) -> void {
    if (ended == operations) return use(times);
    if (times.size() < operations) {
      times.emplace_back(now, -1);
      self(self, now + 1, ended);
      times.pop_back();
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i].second >= 0) continue;
      times[i].second = now;
      self(self, now + 1, ended + 1);
      times[i].second = -1;
    }
  };
  extend(extend, 0, 0);
}

// All histories of so many operations, each of which is one of the first `kinds`; also those with
// operations that are never answered, if `losses`.
int compare_all(std::size_t count, std::size_t kinds, bool losses) {
  int histories = 0;
  std::size_t choices = 1;
  for (std::size_t i = 0; i < count; ++i) choices *= kinds * (losses ? 2 : 1);
  for_each_interval(count, [&](const std::vector<std::pair<int, int>>& times) {
    for (std::size_t choice = 0; choice < choices; ++choice) {
      std::vector<Timed> operations;
      std::size_t left = choice;
      for (const auto& [start, end] : times) {
        const Plain& what = kPlain.at(left % kinds);
        left /= kinds;
        const bool lost = losses && left % 2 == 1;
        if (losses) left /= 2;
        operations.push_back({what, start, end, !lost});
      }
      const bool expected = some_order(operations, 0, 0);
      ASSERT_EQ(decided(operations) == Decision::linearizable, expected)
          << count << " operations, choice " << choice;
      ++histories;
    }
  });
  return histories;
}

TEST(Registers, EverySmallHistoryIsJudgedAsTryingEveryOrderDoes) {
  EXPECT_EQ(compare_all(1, kPlain.size(), true), 9 * 2);
  EXPECT_EQ(compare_all(2, kPlain.size(), true), 3 * 18 * 18);
  EXPECT_EQ(compare_all(3, 5, true), 15 * 10 * 10 * 10);
  EXPECT_EQ(compare_all(3, kPlain.size(), false), 15 * 9 * 9 * 9);
}

TEST(Registers, LargerHistoriesAreJudgedAsTryingEveryOrderDoes) {
  const std::uint32_t seed = perdura::test::random_seed();
  std::mt19937_64 random(seed);
  std::array<int, 2> met{};
  for (int i = 0; i < 4000; ++i) {
    std::vector<Timed> operations;
    for (int operation = 0; operation < 7; ++operation) {
      const int start = static_cast<int>(random() % 16);
      operations.push_back({kPlain.at(random() % kPlain.size()), start,
                            start + static_cast<int>(random() % 12), random() % 4 != 0});
    }
    const bool expected = some_order(operations, 0, 0);
    ASSERT_EQ(decided(operations), expected ? Decision::linearizable : Decision::violated)
        << "history " << i << ", seed " << seed;
    ++met.at(expected ? 1 : 0);
  }
  EXPECT_GT(met[0], 400);
  EXPECT_GT(met[1], 200);
}

// A search that ends at its limit says that it does not know, whatever the right verdict is.
TEST(Registers, ALimitLeavesTheVerdictOpen) {
  std::vector<Timed> operations;
  for (int i = 0; i < 12; ++i) operations.push_back({{Action::write, 0, i + 10}, 0, 30, true});
  operations.push_back({{Action::read, 0, 99}, 31, 32, true});
  EXPECT_EQ(decided(operations, 100), Decision::undecided);
  operations.back().what.value = 17;
  for (std::size_t limit = 1; limit < 200; limit += 3) {
    EXPECT_NE(decided(operations, limit), Decision::violated) << limit;
  }
  EXPECT_EQ(decided(operations), Decision::linearizable);
}

// Many writes of few values that were never answered: which of equal ones took effect does not
// matter, so that they are no more work than there are values.
TEST(Registers, LostWritesOfFewValuesAreInterchangeable) {
  std::vector<Timed> operations;
  for (int i = 0; i < 24; ++i) {
    operations.push_back({{Action::write, 0, i % 4 + 1}, i, 1000, false});
  }
  for (int i = 0; i < 16; ++i) {
    operations.push_back({{Action::read, 0, i * 7 % 4 + 1}, 100 + 2 * i, 101 + 2 * i, true});
  }
  EXPECT_EQ(decided(operations, 50'000), Decision::linearizable);
  operations.push_back({{Action::read, 0, 0}, 200, 201, true});
  EXPECT_EQ(decided(operations, 100'000), Decision::violated);
}

// Of this system's own histories, those in which versions repeat.
TEST(Checker, JudgesRepeatedVersionsAsTryingEveryOrderDoes) {
  const std::uint32_t seed = perdura::test::random_seed();
  std::mt19937_64 random(seed);
  std::array<int, 2> met{};
  for (int i = 0; i < 3000; ++i) {
    const bool fails = i % 3 == 0;
    const Promise promise{i % 2 == 0 ? Promise::Undone::nothing : kLastVersion};
    const History drawn =
        RandomHistory(random, {.operations = 7, .times = 16, .failures = fails ? 1 : 0}).make();
    History history;
    for (Operation operation : drawn.operations()) {
      operation.version %= 2;
      history.add(operation);
    }
    for (const Time failure : drawn.power_failures()) history.add_power_failure(failure);
    const std::vector<Time> failures(history.power_failures().begin(),
                                     history.power_failures().end());
    const bool counts = promise.undone == kLastVersion;
    const bool expected =
        BruteForce(history.operations(), counts ? failures : std::vector<Time>{}, promise)
            .linearizable();
    ASSERT_EQ(check(history, promise).accepted(), expected) << "history " << i << ", seed " << seed;
    ++met.at(expected ? 1 : 0);
  }
  EXPECT_GT(met[0], 200);
  EXPECT_GT(met[1], 200);
}

}  // namespace
}  // namespace perdura::history::test
