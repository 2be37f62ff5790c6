// What several ask for at once, out of the order of time.
#include "platform/sim/kernel/resource.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace perdura::sim {
namespace {

using std::chrono::nanoseconds;

Time at(std::int64_t ns) { return Time(nanoseconds(ns)); }

TEST(SharedResource, ServesOneAfterTheOther) {
  SharedResource memory;
  EXPECT_EQ(memory.take(at(0), at(5), nanoseconds(10)), at(5));
  EXPECT_EQ(memory.take(at(0), at(5), nanoseconds(10)), at(15));
  EXPECT_EQ(memory.take(at(0), at(40), nanoseconds(10)), at(40));
}

TEST(SharedResource, GivesTheTimeThatIsLeftBetween) {
  SharedResource memory;
  memory.take(at(0), at(10), nanoseconds(10));
  memory.take(at(0), at(30), nanoseconds(10));
  EXPECT_EQ(memory.take(at(0), at(0), nanoseconds(10)), at(0));
  EXPECT_EQ(memory.take(at(0), at(12), nanoseconds(10)), at(20)) << "just enough";
  EXPECT_EQ(memory.take(at(0), at(5), nanoseconds(1)), at(40)) << "all taken";
}

// Whatever the order in which it is asked for: nobody is served before he asks, no two at once, and
// nobody waits while there is room.
TEST(SharedResource, IsNeverTakenTwiceAndNeverLeftIdle) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    SharedResource memory;
    std::vector<bool> taken(4000);
    std::int64_t now = 0;
    for (int i = 0; i < 60; ++i) {
      now += static_cast<std::int64_t>(random() % 12);
      const auto asked = static_cast<std::size_t>(now) + random() % 100;
      const std::size_t length = 1 + random() % 8;
      const auto room = [&](std::size_t begin) {
        for (std::size_t t = begin; t < begin + length; ++t) {
          if (taken[t]) return false;
        }
        return true;
      };
      std::size_t first = asked;
      while (!room(first)) ++first;
      ASSERT_EQ(memory.take(at(now), at(static_cast<std::int64_t>(asked)),
                            nanoseconds(static_cast<std::int64_t>(length))),
                at(static_cast<std::int64_t>(first)))
          << "round " << round << ", request " << i;
      for (std::size_t t = first; t < first + length; ++t) taken[t] = true;
    }
  }
}

}  // namespace
}  // namespace perdura::sim
