// The check of any sequential specification: histories of a queue, written by hand and at random,
// against the definition, which tries every order.
#include "services/linearizability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/services/queue.h"
#include "tests/support/seed.h"

namespace perdura::services::test {
namespace {

using Decision = Linearizability::Decision;

Linearizability check(const std::vector<QueueCall>& calls, const std::vector<Time>& failures = {}) {
  return check_linearizability(Queue{}, std::span(calls), failures);
}
Linearizability check_buffered(const std::vector<QueueCall>& calls,
                               const std::vector<Time>& failures) {
  return check_linearizability(Buffered<Queue>{}, std::span(calls), failures);
}

TEST(Linearizability, OperationsTakeEffectInTheOrderOfTheirTimes) {
  EXPECT_TRUE(check({}).accepted());
  EXPECT_TRUE(check({enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(1, 4, 5)}).accepted());
  const auto wrong = check({enqueue(1, 0, 1), enqueue(2, 2, 3), dequeue(2, 4, 5)});
  EXPECT_EQ(wrong.decision, Decision::violated);
  EXPECT_EQ(wrong.refused, 2U);
  EXPECT_TRUE(check({enqueue(1, 0, 3), enqueue(2, 2, 3), dequeue(2, 4, 5)}).accepted())
      << "they were under way at the same time";
  EXPECT_FALSE(check({enqueue(1, 0, 1), dequeue(std::nullopt, 2, 3)}).accepted());
  EXPECT_TRUE(check({enqueue(1, 0, 1), dequeue(std::nullopt, 1, 3), dequeue(1, 4, 5)}).accepted())
      << "equal times count as concurrent";
}

TEST(Linearizability, WhatWasNotAnsweredMayHaveTakenEffectOrNot) {
  const std::vector lost{unanswered(enqueue(1, 0, 1)), dequeue(std::nullopt, 5, 6)};
  EXPECT_TRUE(check(lost).accepted());
  EXPECT_TRUE(check({lost[0], lost[1], dequeue(1, 7, 8)}).accepted()) << "at any time after it";
  EXPECT_FALSE(check({dequeue(1, 0, 1), unanswered(enqueue(1, 2, 3))}).accepted());
}

TEST(Linearizability, APowerFailureMayUndoTheLastOperationsOfABufferedObjectOnly) {
  const std::vector before{enqueue(1, 0, 1), enqueue(2, 2, 3)};
  const auto found = [&](std::vector<QueueCall> after) {
    after.insert(after.begin(), before.begin(), before.end());
    return after;
  };
  const std::vector failure{at(10)};
  const auto one_left = found({dequeue(1, 20, 21), dequeue(std::nullopt, 22, 23)});
  EXPECT_FALSE(check(one_left, failure).accepted());
  EXPECT_TRUE(check_buffered(one_left, failure).accepted());
  EXPECT_TRUE(check_buffered(found({dequeue(std::nullopt, 20, 21)}), failure).accepted());
  EXPECT_FALSE(check_buffered(found({dequeue(2, 20, 21)}), failure).accepted())
      << "a prefix is left, not what came last";
  EXPECT_FALSE(check_buffered(found({dequeue(std::nullopt, 8, 9)}), failure).accepted())
      << "before the failure nothing is undone";
  EXPECT_FALSE(check_buffered(found({dequeue(1, 20, 21), dequeue(2, 22, 23),
                                     dequeue(std::nullopt, 24, 25), dequeue(2, 32, 33)}),
                              {at(10), at(11)})
                   .accepted())
      << "what has survived stays";
}

// Enqueues at the same time, in an order that no dequeue tells: as many orders as there can be.
std::vector<QueueCall> many_orders() {
  std::vector<QueueCall> calls;
  for (int i = 0; i < 12; ++i) calls.push_back(enqueue(i, 0, 1));
  calls.push_back(dequeue(100, 2, 3));
  return calls;
}

TEST(Linearizability, GivesUpAtTheLimit) {
  const std::vector<QueueCall> calls = many_orders();
  const auto result = check_linearizability(Queue{}, std::span(calls), {}, 1000);
  EXPECT_EQ(result.decision, Decision::undecided);
}

// Of writes that were under way and that others have overwritten, nothing can be known. They do not
// multiply the orders to try: each of them would double the number.
struct Register {
  using State = int;
  struct Operation {
    bool writes = false;
    int value = 0;
  };
  State initial() const { return 0; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    if (operation.writes) return {operation.value};
    if (answered && operation.value != state) return {};
    return {state};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }
};

TEST(Linearizability, UnansweredCallsWhoseEffectsAreOverwrittenCostLittle) {
  constexpr int kUnanswered = 14;
  std::vector<Call<Register::Operation>> calls;
  for (int i = 1; i <= kUnanswered; ++i) calls.push_back({{true, i}, at(0), Time::max(), false});
  const auto ended = [&](bool writes, int value) {
    const auto after = static_cast<int>(calls.size());
    calls.push_back({{writes, value}, at(10 * after), at(10 * after + 1)});
  };
  ended(true, 100);
  ended(false, 100);
  ended(false, 3);
  ended(false, kUnanswered);
  EXPECT_TRUE(check_linearizability(Register{}, std::span(std::as_const(calls))).accepted());
  ended(false, 100);
  // After each of the calls with an answer, the state is one of a few values, each of which is left
  // in as many ways as there are values.
  constexpr std::size_t kValues = kUnanswered + 2;
  const std::size_t limit = calls.size() * kValues * kValues;
  const auto wrong = check_linearizability(Register{}, std::span(std::as_const(calls)), {}, limit);
  EXPECT_EQ(wrong.decision, Decision::violated);
  EXPECT_EQ(wrong.refused, calls.size() - 1);
}

TEST(Linearizability, EndsWhenItsCallerWantsTo) {
  struct Ended {};
  const std::vector<QueueCall> calls = many_orders();
  int asked = 0;
  const Attend attend = [&] {
    if (++asked == 3) throw Ended{};
  };
  EXPECT_THROW(check_linearizability(Queue{}, std::span(calls), {}, kMostConfigurations, attend),
               Ended);
  EXPECT_EQ(asked, 3);
}

// A long history of one object is decided in few steps if few operations are concurrent: two
// clients count, and each answer tells where its operation has its place.
struct LongCounter {
  using State = int;
  struct Operation {
    int answer = 0;
  };
  mutable std::size_t steps = 0;
  State initial() const { return 0; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    ++steps;
    if (answered && operation.answer != state + 1) return {};
    return {state + 1};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }
};

TEST(Linearizability, ALongHistoryTakesStepsInProportionToItsLength) {
  constexpr int kCalls = 20'000;
  std::vector<Call<LongCounter::Operation>> calls;
  for (int i = 1; i <= kCalls; ++i) calls.push_back({{i}, at(10 * i), at(10 * i + 15)});
  const LongCounter counter;
  EXPECT_TRUE(check_linearizability(counter, std::span(std::as_const(calls))).accepted());
  EXPECT_LE(counter.steps, std::size_t{4 * kCalls});
  calls[kCalls - 10].operation.answer = 7;
  const auto wrong = check_linearizability(counter, std::span(std::as_const(calls)));
  EXPECT_EQ(wrong.decision, Decision::violated);
  EXPECT_EQ(wrong.refused, std::size_t{kCalls - 10});
}

// The definition: some order, of all that was answered and some of the rest, in which nothing comes
// before what had ended when it began, and in which the queue answers so.
bool some_order_exists(const std::vector<QueueCall>& calls) {
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    for (std::size_t length = order.size() + 1; length-- > 0;) {
      const auto missing = [&](std::size_t i) { return calls[order[i]].answered; };
      bool possible = true;
      for (std::size_t i = length; i < order.size(); ++i) possible = possible && !missing(i);
      Queue::State state;
      for (std::size_t i = 0; possible && i < length; ++i) {
        const QueueCall& call = calls[order[i]];
        for (std::size_t later = i + 1; later < length; ++later) {
          const QueueCall& other = calls[order[later]];
          possible = possible && !(other.answered && other.end < call.start);
        }
        const auto next = Queue{}.after(state, call.operation, call.answered);
        possible = possible && !next.empty();
        if (possible) state = next.front();
      }
      if (possible) return true;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST(Linearizability, AgreesWithTryingEveryOrder) {
  const std::uint64_t seed = perdura::test::random_seed();
  std::mt19937_64 random(seed);
  const auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  int accepted = 0;
  constexpr int kHistories = 5000;
  for (int history = 0; history < kHistories; ++history) {
    std::vector<QueueCall> calls;
    const int count = 2 + below(5);
    int values = 0;
    for (int i = 0; i < count; ++i) {
      const int start = below(16);
      const int end = start + below(8);
      const bool adds = values == 0 || below(2) == 0;
      const int value = adds ? values++ : below(values + 1) - 1;
      QueueCall call = adds         ? enqueue(value, start, end)
                       : value >= 0 ? dequeue(value, start, end)
                                    : dequeue(std::nullopt, start, end);
      calls.push_back(below(3) == 0 ? unanswered(call) : call);
    }
    const bool expected = some_order_exists(calls);
    ASSERT_EQ(check(calls).accepted(), expected) << "seed " << seed << ", history " << history;
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(accepted, kHistories / 5);
  EXPECT_LT(accepted, kHistories * 9 / 10);
}

}  // namespace
}  // namespace perdura::services::test
