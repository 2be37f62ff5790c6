#include "harness/measure/at_work.h"

#include <gtest/gtest.h>

#include <vector>

namespace perdura::measure {
namespace {

AtWork process(std::uint64_t clock, std::int64_t begin_us, std::int64_t end_us,
               std::uint64_t operations) {
  return {clock, Time(Microseconds(begin_us)), Time(Microseconds(end_us)), operations};
}
std::optional<AllAtWork> all(const std::vector<AtWork>& processes) {
  return all_at_work(processes);
}

TEST(AtWork, OfOneProcessIsItsOwn) {
  const auto found = all({process(0, 5, 15, 20)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, Microseconds(10));
  EXPECT_EQ(found->operations, 20);
  EXPECT_DOUBLE_EQ(found->per_second(), 2e6);
}

TEST(AtWork, OfSeveralIsWhatTheyHaveInCommon) {
  // Both do one operation a microsecond.
  const auto found = all({process(0, 5, 15, 10), process(0, 10, 30, 20)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, Microseconds(5));
  EXPECT_DOUBLE_EQ(found->operations, 10);
}

TEST(AtWork, OneAfterTheOtherIsNotTogether) {
  EXPECT_FALSE(all({process(0, 0, 10, 10), process(0, 10, 20, 10)}));
}

TEST(AtWork, WithoutClientsIsNothing) {
  EXPECT_FALSE(all({}));
  EXPECT_FALSE(all({process(0, 0, 10, 10), AtWork{}})) << "one's clients never began";
}

// The numbers that clocks of different hosts show say nothing of which came first.
TEST(AtWork, WithDifferentClocksBeganTogether) {
  const auto found =
      all({process(1, 0, 10, 10), process(2, 900, 920, 20), process(2, 905, 925, 20)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->time, Microseconds(5)) << "the third begins 5 us after the second";
  EXPECT_DOUBLE_EQ(found->operations, 15);
}

}  // namespace
}  // namespace perdura::measure
