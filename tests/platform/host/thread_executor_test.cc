// What a turn of an executor does: who runs in it, and when pollers and timers are looked at.
#include "platform/host/thread_executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "platform/runtime/sync.h"

namespace perdura::host {
namespace {

class CountingPoller final : public Poller {
 public:
  bool poll() override {
    ++polls;
    if (on_poll) on_poll();
    return false;
  }
  std::uint64_t polls = 0;
  std::function<void()> on_poll;
};

struct Machine {
  runtime::Doorbell doorbell;
  ThreadExecutor executor{runtime::HostClock::start(), CompletionMode::polling, doorbell,
                          [](std::exception_ptr) { ADD_FAILURE() << "a task has thrown"; }};
  CountingPoller poller;
  Machine() { executor.add_poller(poller); }
};

TEST(ThreadExecutor, RunsWhoIsWokenBeforeItLooksElsewhere) {
  Machine machine;
  WaitList first;
  WaitList second;
  std::vector<std::uint64_t> polls;
  const auto hand_over = [&](WaitList& from, WaitList* to) -> Task<> {
    co_await wait(from);
    polls.push_back(machine.poller.polls);
    if (to != nullptr) {
      to->wake_all();
    } else {
      machine.executor.stop();
    }
  };
  machine.executor.spawn(hand_over(first, &second));
  machine.executor.spawn(hand_over(second, nullptr));
  const auto begin = [&]() -> Task<> {
    co_await yield();
    polls.push_back(machine.poller.polls);
    first.wake_all();
  };
  machine.executor.spawn(begin());
  machine.executor.run();
  ASSERT_EQ(polls.size(), 3U);
  EXPECT_EQ(polls[1], polls[0]);
  EXPECT_EQ(polls[2], polls[0]);
}

TEST(ThreadExecutor, LooksElsewhereWheneverATaskYields) {
  Machine machine;
  const auto yields = [&]() -> Task<> {
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t before = machine.poller.polls;
      co_await yield();
      EXPECT_EQ(machine.poller.polls, before + 1);
    }
    machine.executor.stop();
  };
  machine.executor.spawn(yields());
  machine.executor.run();
}

TEST(ThreadExecutor, LooksElsewhereAlthoughTasksWakeEachOtherForEver) {
  Machine machine;
  WaitList waiting[2];
  const auto play = [&](int self) -> Task<> {
    for (;;) {
      waiting[1 - self].wake_all();
      co_await wait(waiting[self]);
    }
  };
  machine.executor.spawn(play(0));
  machine.executor.spawn(play(1));
  machine.poller.on_poll = [&] {
    if (machine.poller.polls == 100) machine.executor.stop();
  };
  machine.executor.run();
  EXPECT_EQ(machine.poller.polls, 100U);
}

// Also those that are so far away that the clock is not read in each turn.
TEST(ThreadExecutor, FiresTimersInTheirOrderAndNeverEarly) {
  for (const CompletionMode mode : {CompletionMode::polling, CompletionMode::event}) {
    Machine machine;
    machine.executor.set_mode(mode);
    const Time begin = machine.executor.now();
    std::vector<int> fired;
    const auto sleeper = [&](int number, Picoseconds duration) -> Task<> {
      const Time when = begin + duration;
      co_await sleep_until(when);
      EXPECT_GE(machine.executor.now(), when);
      fired.push_back(number);
      if (fired.size() == 4) machine.executor.stop();
    };
    machine.executor.spawn(sleeper(3, Milliseconds(9)));
    machine.executor.spawn(sleeper(1, Microseconds(20)));
    machine.executor.spawn(sleeper(2, Milliseconds(4)));
    machine.executor.spawn(sleeper(0, Picoseconds(0)));
    machine.executor.run();
    EXPECT_EQ(fired, (std::vector{0, 1, 2, 3}));
  }
}

// However long ago the clock was read for timers, as there were none.
TEST(ThreadExecutor, FiresATimerThatIsDueInTheNextTurn) {
  Machine machine;
  const auto sleeps = [&]() -> Task<> {
    const Time begin = machine.executor.now();
    while (machine.executor.now() < begin + Milliseconds(2)) co_await yield();
    const std::uint64_t before = machine.poller.polls;
    co_await sleep_until(machine.executor.now());
    EXPECT_LE(machine.poller.polls, before + 1);
    machine.executor.stop();
  };
  machine.executor.spawn(sleeps());
  machine.executor.run();
}

}  // namespace
}  // namespace perdura::host
