// Threads that stand still for a while.
#include <gtest/gtest.h>

#include <vector>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::sim::test {
namespace {

constexpr Picoseconds kStep = Microseconds(1);

Time at(int microseconds) { return Time() + Microseconds(microseconds); }

// When a thread that does a microsecond of work ten times, with or without suspending in between,
// has done each.
std::vector<Time> times_of_work(std::vector<Stall> stalls, bool suspends) {
  SimPlatform platform(load_profile(perdura::test::profile_path("erda-connectx3")), 1);
  platform.stall(0, 0, std::move(stalls));
  std::vector<Time> times;
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (int i = 1; i <= 10; ++i) {
      cost_meter->spin_until(thread.executor.now() + kStep);
      if (suspends) co_await yield();
      times.push_back(thread.executor.now());
    }
  });
  platform.run();
  return times;
}

class Stalls : public testing::TestWithParam<bool> {};

TEST_P(Stalls, DelayWhatComesAfterTheirBeginning) {
  const std::vector<Time> plain = times_of_work({}, GetParam());
  const std::vector<Time> stalled = times_of_work({{at(3), at(23)}, {at(25), at(26)}}, GetParam());
  ASSERT_EQ(plain.size(), stalled.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool after_first = plain[i] > at(3);
    const bool after_second = plain[i] + Microseconds(20) > at(25);
    const Picoseconds delay = stalled[i] - plain[i];
    EXPECT_LE(delay, (after_first ? Microseconds(20) : Picoseconds{}) +
                         (after_second ? Microseconds(1) : Picoseconds{}))
        << i;
    // No work ends within a stall.
    EXPECT_FALSE(stalled[i] > at(4) && stalled[i] < at(23)) << i;
  }
  EXPECT_GE(stalled.back() - plain.back(), Microseconds(20));
}

TEST_P(Stalls, OfAnotherThreadChangeNothing) {
  SimPlatform platform(load_profile(perdura::test::profile_path("erda-connectx3")), 1);
  platform.stall(0, 1, {{at(1), at(100)}});
  Time end{};
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (int i = 0; i < 10; ++i) cost_meter->spin_until(thread.executor.now() + kStep);
    end = thread.executor.now();
    co_return;
  });
  platform.run();
  EXPECT_LT(end, at(12));
}

INSTANTIATE_TEST_SUITE_P(, Stalls, testing::Bool(), [](const auto& one) {
  return one.param ? std::string("between_tasks") : std::string("within_a_task");
});

TEST(Stall, OfAnIdleThreadDelaysItsNextTask) {
  SimPlatform platform(load_profile(perdura::test::profile_path("erda-connectx3")), 1);
  platform.stall(0, 0, {{at(10), at(50)}});
  Time woken{};
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await sleep_until(at(20));
    woken = thread.executor.now();
  });
  platform.run();
  EXPECT_GE(woken, at(50));
  EXPECT_LT(woken, at(51));
}

}  // namespace
}  // namespace perdura::sim::test
