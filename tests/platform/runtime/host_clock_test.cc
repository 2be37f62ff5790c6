#include "platform/runtime/host_clock.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace perdura::runtime {
namespace {

// How far two clocks may be apart that have gone for `time`: 1 % of it and 100 us, thousands of
// times the error that the header promises. A wrong unit, factor or offset is far beyond.
Picoseconds tolerance(Time time) { return time.time_since_epoch() / 100 + Microseconds(100); }

Time monotonic_since(std::uint64_t epoch) {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return Time(std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec) -
              Nanoseconds(static_cast<std::int64_t>(epoch)));
}

class Clocks : public testing::TestWithParam<bool> {
 protected:
  HostClock start() const {
    return GetParam() ? HostClock::start() : HostClock::start_without_counter();
  }
};

TEST_P(Clocks, GoLikeMonotonicTime) {
  const HostClock clock = start();
  Time before{};
  while (before < Time(Milliseconds(20))) {
    // A reading lies between the two around it, however long this thread was kept from running.
    before = monotonic_since(clock.epoch);
    const Time time = clock.now();
    const Time after = monotonic_since(clock.epoch);
    ASSERT_GE(time, before - tolerance(before));
    ASSERT_LE(time, after + tolerance(after));
  }
}

TEST_P(Clocks, NeverGoBack) {
  const HostClock clock = start();
  Time last{};
  for (int i = 0; i < 100000; ++i) {
    const Time begin = clock.begin();
    const Time end = clock.now();
    ASSERT_GE(begin, last);
    ASSERT_GE(end, begin);
    last = end;
  }
}

// What one thread did after another one is later, whatever cores they run on.
TEST_P(Clocks, AreTheSameInAllThreads) {
  const HostClock clock = start();
  constexpr std::int64_t kRounds = 2000;
  std::atomic<std::int64_t> turn{0};
  Time shared{};  // of whoever had the last turn
  const auto play = [&](std::int64_t parity) {
    for (std::int64_t round = parity; round < kRounds; round += 2) {
      // Sleeps: on a busy machine, each turn of one that yields takes a time slice of the others.
      for (std::int64_t now = turn; now != round; now = turn) turn.wait(now);
      const Time mine = clock.now();
      EXPECT_GE(mine, shared) << "round " << round;
      shared = mine;
      turn.store(round + 1);
      turn.notify_one();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_GT(shared, Time{});
}

INSTANTIATE_TEST_SUITE_P(HostClock, Clocks, testing::Bool(), [](const auto& uses_counter) {
  return uses_counter.param ? "counter_if_any" : "monotonic";
});

TEST(HostClock, ConvertsTicksToPicoseconds) {
  HostClock clock;
  clock.scale = (std::uint64_t{385} << 32) + (std::uint64_t{1} << 31);  // 385.5 ps a tick
  EXPECT_EQ(clock.after(0), Time{});
  EXPECT_EQ(clock.after(1000), Time(Picoseconds(385500)));
  // A month of ticks at 2.6 GHz: the product has more than 64 bits.
  EXPECT_EQ(clock.after(6'700'000'000'000'000), Time(Picoseconds(2'582'850'000'000'000'000)));
}

}  // namespace
}  // namespace perdura::runtime
