// Which reply is for which call, whoever receives it.
#include "rpc/calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/platforms.h"

namespace perdura::rpc {

using fabric::CompletionQueue;
using fabric::ReceiveCompletion;

// A protocol in which the immediate names the call, and the id of the buffer is the answer.
struct NumberedCalls {
  Calls<std::uint64_t> calls;
  CompletionQueue arrived;
  std::uint64_t taken = 0;

  explicit NumberedCalls(std::uint32_t count) { calls.open(count); }
  void arrive(Call call, std::uint64_t answer) {
    ReceiveCompletion completion;
    completion.immediate = call;
    completion.buffer_id = answer;
    arrived.push(completion);
  }
  void end_connection() {
    ReceiveCompletion completion;
    completion.status = fabric::Status::disconnected;
    arrived.push(completion);
  }
  Task<std::optional<std::uint64_t>> answer_to(Call call) {
    return calls.answer_to(call, arrived, [this](const ReceiveCompletion& completion) {
      ++taken;
      if (completion.status != fabric::Status::success) return calls.fail();
      calls.deliver(*completion.immediate, completion.buffer_id);
    });
  }
};

namespace {

// What a task of a simulated thread does until it ends.
void run(const std::function<Task<>()>& body) {
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread&) { return body(); });
  platform->run();
}

// Lets the other tasks go on until `done` says so. False, and the test fails, if it never does.
Task<bool> until(std::function<bool()> done) {
  constexpr int kEnough = 10'000;
  for (int i = 0; i < kEnough; ++i) {
    if (done()) co_return true;
    co_await yield();
  }
  ADD_FAILURE() << "a call waits for ever";
  co_return false;
}

// The sessions of these tests outlive the thread: where a test fails, calls still wait at its end.

TEST(Calls, AnAnswerFindsItsCallInWhateverOrderTheyCome) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t kCalls = 5;
  constexpr std::uint64_t kRounds = 200;
  NumberedCalls session(kCalls);
  std::uint64_t ended = 0;
  run([&]() -> Task<> {
    const auto ask = [&](std::uint64_t round) -> Task<> {
      const auto lease = co_await session.calls.begin();
      session.calls.expect(lease.call());
      const std::optional<std::uint64_t> answer = co_await session.answer_to(lease.call());
      EXPECT_EQ(answer, round * kCalls + lease.call());
      ++ended;
    };
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t i = 0; i < kCalls; ++i) Executor::current().spawn(ask(round));
      co_await yield();  // all of them expect their answers
      std::vector<Call> order(kCalls);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (const Call call : order) {
        if (random() % 2 == 0) co_await yield();
        session.arrive(call, round * kCalls + call);
      }
      const bool all_ended = co_await until([&] { return ended == (round + 1) * kCalls; });
      if (!all_ended) co_return;
    }
    EXPECT_EQ(session.taken, kRounds * kCalls);
  });
}

TEST(Calls, AreGivenToThoseWhoWaitFirstComeFirstServed) {
  NumberedCalls session(2);
  std::vector<int> began;
  run([&]() -> Task<> {
    const auto operation = [&](int number) -> Task<> {
      const auto lease = co_await session.calls.begin();
      EXPECT_LT(lease.call(), 2U);
      began.push_back(number);
      session.calls.expect(lease.call());
      co_await session.answer_to(lease.call());
    };
    for (int i = 0; i < 6; ++i) Executor::current().spawn(operation(i));
    co_await yield();
    for (std::size_t under_way = 2; under_way <= 6; ++under_way) {
      EXPECT_EQ(began.size(), under_way);
      session.arrive(under_way % 2, 0);
      for (int i = 0; i < 10; ++i) co_await yield();
    }
    EXPECT_EQ(began, (std::vector{0, 1, 2, 3, 4, 5}));
    session.arrive(1, 0);
    for (int i = 0; i < 10; ++i) co_await yield();
  });
}

TEST(Calls, WaitNoMoreWhenTheConnectionEnds) {
  NumberedCalls session(3);
  int ended = 0;
  run([&]() -> Task<> {
    const auto ask = [&]() -> Task<> {
      const auto lease = co_await session.calls.begin();
      session.calls.expect(lease.call());
      EXPECT_EQ(co_await session.answer_to(lease.call()), std::nullopt);
      ++ended;
    };
    for (int i = 0; i < 3; ++i) Executor::current().spawn(ask());
    co_await yield();
    session.end_connection();
    co_await until([&] { return ended == 3; });
    EXPECT_TRUE(session.calls.broken());
  });
}

// Also one that asks in the moment in which a call has become free, before whoever waits for it has
// had his turn; and one in the line may end.
TEST(Calls, AreGivenInTheOrderInWhichTheyAreAskedFor) {
  NumberedCalls session(1);
  std::vector<int> order;
  run([&]() -> Task<> {
    const auto ask = [&](int number) -> Task<> {
      const auto lease = co_await session.calls.begin();
      order.push_back(number);
    };
    {
      const auto lease = co_await session.calls.begin();
      for (int i = 0; i < 3; ++i) Executor::current().spawn(ask(i));
      co_await yield();
      Task<> given_up = ask(9);
      EXPECT_TRUE(order.empty());
    }
    for (int i = 3; i < 6; ++i) co_await ask(i);
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Calls, WaitForAnswersThatAnotherTaskDelivers) {
  NumberedCalls session(1);
  bool ended = false;
  run([&]() -> Task<> {
    const auto ask = [&]() -> Task<> {
      const auto lease = co_await session.calls.begin();
      session.calls.expect(lease.call());
      EXPECT_EQ(co_await session.calls.answer_to(lease.call()), 7U);
      ended = true;
    };
    Executor::current().spawn(ask());
    co_await yield();
    EXPECT_TRUE(session.calls.deliver(0, 7));
    co_await until([&] { return ended; });
  });
}

TEST(Calls, TakeOneAnswerToARequest) {
  run([]() -> Task<> {
    NumberedCalls session(1);
    const auto lease = co_await session.calls.begin();
    EXPECT_TRUE(session.calls.deliver(lease.call(), 1));  // to nothing
    for (std::uint64_t i = 2; i < 5; ++i) {
      EXPECT_FALSE(session.calls.expects(lease.call()));
      session.calls.expect(lease.call());
      EXPECT_TRUE(session.calls.expects(lease.call()));
      EXPECT_TRUE(session.calls.deliver(lease.call(), i));
      EXPECT_TRUE(session.calls.deliver(lease.call(), 100 + i));  // twice
      EXPECT_EQ(co_await session.answer_to(lease.call()), i);
    }
    EXPECT_FALSE(session.calls.deliver(1, 0));  // no such call
  });
}

TEST(InOrder, NamesCallsInTheOrderOfTheirRequests) {
  InOrder requests;
  EXPECT_EQ(requests.next(), std::nullopt);
  for (const Call call : {3U, 1U, 2U}) requests.sent(call);
  for (const Call call : {3U, 1U, 2U}) EXPECT_EQ(requests.next(), call);
  EXPECT_EQ(requests.next(), std::nullopt);
}

}  // namespace
}  // namespace perdura::rpc
