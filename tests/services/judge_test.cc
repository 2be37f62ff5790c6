// Which guarantees a history of any object kept: a queue's, by hand. Numbers 1 and 2 were put in
// and acknowledged, 3 was under way when the power failed; then somebody takes out what is there.
#include "services/judge.h"

#include <gtest/gtest.h>

#include "services/log/specification.h"
#include "tests/services/queue.h"

namespace perdura::services::test {
namespace {

constexpr std::uint32_t kInspector = 9;
using Calls = std::vector<ClientCall<Queue::Operation>>;

Verdict judge(const std::vector<int>& found, const Calls& more = {},
              const std::string& problem = "") {
  Calls calls = more;
  calls.push_back({enqueue(1, 0, 1), 0});
  calls.push_back({enqueue(2, 2, 3), 0});
  calls.push_back({unanswered(enqueue(3, 99, 0)), 0});
  int start = 200;
  for (const int value : found) {
    calls.push_back({dequeue(value, start, start + 1), kInspector});
    start += 2;
  }
  calls.push_back({dequeue(std::nullopt, start, start + 1), kInspector});
  const Time failures[] = {at(100)};
  return judge_history(Queue{}, calls, kInspector, failures, problem);
}

std::string kept(const Verdict& verdict) {
  const std::string_view letters = "dwroa";
  std::string kept;
  for (const Condition condition : kConditions) {
    kept += verdict.holds(condition) ? letters[kept.size()] : '-';
  }
  return kept;
}

TEST(HistoryJudge, FindsWhatWasKept) {
  EXPECT_EQ(kept(judge({1, 2, 3})), "dwroa");
  EXPECT_EQ(kept(judge({1, 2})), "dwroa") << "3 was under way";
  EXPECT_EQ(kept(judge({1})), "--roa") << "the last one is lost, and nobody had seen it";
  EXPECT_EQ(kept(judge({})), "--roa");
  EXPECT_EQ(kept(judge({2})), "--r-a") << "what came later is there, what came before is not";
  EXPECT_EQ(kept(judge({2, 1})), "--r-a")
      << "both are there, but what was told of their order is not";
  EXPECT_EQ(kept(judge({4})), "-----") << "nobody put that in";
}

// Two clients took numbers out: what they were told is told.
TEST(HistoryJudge, ToldIsToldThoughNotAcknowledged) {
  const Calls took_three{{dequeue(1, 4, 5), 1}, {dequeue(2, 6, 7), 1}, {dequeue(3, 99, 100), 1}};
  EXPECT_EQ(kept(judge({}, took_three)), "dwroa");
  EXPECT_EQ(kept(judge({3}, took_three)).substr(0, 1), "-") << "it comes back";
}

TEST(HistoryJudge, AProblemIsTheLossOfEverything) {
  EXPECT_EQ(kept(judge({1, 2}, {}, "recovery fails")), "-----");
}

// Nobody was told anything, so each of the changes may or may not have had an effect: too many ways
// to try if the history did not tell that all of them had but the ones that were lost.
TEST(HistoryJudge, DecidesLongHistoriesThatNobodyHasRead) {
  using Append = LogSpecification::Operation;
  std::vector<ClientCall<Append>> calls{
      {{.operation = {.record = 1, .number = 1}, .start = at(0), .end = at(1)}, 0}};
  LogSpecification::State left;
  for (std::uint64_t record = 2; record < 30; ++record) {
    const int start = 200 + 2 * static_cast<int>(record);
    left.push_back(record);
    calls.push_back({{.operation = {.record = record, .number = left.size()},
                      .start = at(start),
                      .end = at(start + 1)},
                     0});
  }
  const Append read{.kind = Append::Kind::read, .found = left};
  calls.push_back({{.operation = read, .start = at(999), .end = at(1000)}, kInspector});
  const Time failures[] = {at(100)};
  const Verdict verdict = judge_history(LogSpecification{}, calls, kInspector, failures, "");
  EXPECT_EQ(kept(verdict), "--roa");
  EXPECT_FALSE(verdict.loss(Condition::observed).undecided);
}

// Nothing may be lost where nothing has failed, whatever a system promises for failures.
TEST(HistoryJudge, WithoutAFailureOneLossBreaksAllConditions) {
  const Calls lost{{enqueue(1, 0, 1), 0}, {dequeue(std::nullopt, 2, 3), kInspector}};
  EXPECT_EQ(kept(judge_history(Queue{}, lost, kInspector, {}, "")), "-----");
  const Calls right{{enqueue(1, 0, 1), 0}, {dequeue(1, 2, 3), kInspector}};
  EXPECT_EQ(kept(judge_history(Queue{}, right, kInspector, {}, "")), "dwroa");
}

struct Impatient : Queue {
  static constexpr std::size_t kMostConfigurations = 100;
};

// A judge who gives up has found nothing: neither that a level is kept nor that it is not.
TEST(HistoryJudge, GivingUpIsNoLoss) {
  Calls calls;
  for (int i = 0; i < 12; ++i) calls.push_back({enqueue(i, 0, 1), 0});
  calls.push_back({dequeue(100, 2, 3), kInspector});
  const Verdict verdict = judge_history(Impatient{}, calls, kInspector, {}, "");
  EXPECT_TRUE(verdict.loss_of(GuaranteeLevel::durable).undecided);
  EXPECT_THROW(verdict.require_decided(Condition::durable), std::runtime_error);

  const Verdict lost = judge({4});
  EXPECT_FALSE(lost.loss_of(GuaranteeLevel::durable).undecided);
  EXPECT_NO_THROW(lost.require_decided(Condition::durable));

  Verdict both;
  both.set(Condition::acknowledged, verdict.loss(Condition::acknowledged));
  both.set(Condition::ordered, lost.loss(Condition::ordered));
  EXPECT_FALSE(both.loss_of(GuaranteeLevel::durable_writes).undecided)
      << "one of its conditions is known to be broken";
}

TEST(HistoryJudge, EndsWhenItsCallerWantsTo) {
  struct Ended {};
  ToJudge judged = ToJudge::all();
  judged.attend = [] { throw Ended{}; };
  const Calls calls{{enqueue(1, 0, 1), 0}};
  const Time failures[] = {at(100)};
  EXPECT_THROW(judge_history(Queue{}, calls, kInspector, failures, "", judged), Ended);
}

TEST(HistoryJudge, TheTraceSaysWhatWasDoneAndWhatCannotBe) {
  const std::string trace = judge({2, 1}).why(Condition::durable);
  for (const std::string_view part :
       {"enqueue of 1 by client 0", "enqueue of 3, no answer", "the server fails at",
        "dequeue of 2 by client 9", "=> impossible: dequeue of "}) {
    EXPECT_NE(trace.find(part), std::string::npos) << part << " is missing in:\n" << trace;
  }
}

}  // namespace
}  // namespace perdura::services::test
