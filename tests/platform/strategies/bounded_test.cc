// Bounded exploration begins each run with few deviations once, in the order of their number.
#include "platform/strategies/bounded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "platform/base/error.h"

namespace perdura::strategies::test {
namespace {

using Taken = std::vector<std::size_t>;

// What there is to choose depends on what was chosen before.
Taken run(pmem::Choices& choices) {
  Taken taken;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < 5 + sum % 2; ++i) {
    taken.push_back(choices.choose(1 + (i + sum) % 3));
    sum += taken.back();
  }
  return taken;
}

std::size_t deviations(const Taken& taken) {
  return taken.size() - static_cast<std::size_t>(std::count(taken.begin(), taken.end(), 0U));
}

class BoundedBy : public testing::TestWithParam<std::uint32_t> {};

TEST_P(BoundedBy, BeginsEachRunWithinTheBoundOnce) {
  std::set<Taken> expected;
  for (pmem::Enumerator all; all.next();) {
    const Taken taken = run(all);
    if (deviations(taken) <= GetParam()) expected.insert(taken);
  }
  ASSERT_GT(expected.size(), GetParam());
  std::set<Taken> begun;
  std::size_t most = 0;
  Bounded bounded(GetParam());
  double share = 0;
  while (bounded.next()) {
    EXPECT_LE(share, bounded.share());
    share = bounded.share();
    const std::size_t planned = bounded.deviations();
    const Taken taken = run(bounded);
    EXPECT_TRUE(begun.insert(taken).second) << "a run is begun twice";
    EXPECT_EQ(deviations(taken), planned);
    EXPECT_TRUE(bounded.is_new());
    EXPECT_GE(planned, most) << "more deviations come before fewer";
    most = planned;
  }
  EXPECT_EQ(begun, expected);
  EXPECT_EQ(bounded.runs(), expected.size());
  EXPECT_LE(share, 1);
}

INSTANTIATE_TEST_SUITE_P(, BoundedBy, testing::Values(0U, 1U, 2U, 3U, 10U));

// A run is new from its last deviation on: before that it is the run that it was made from.
TEST(Bounded, KnowsWhereARunBecomesNew) {
  Bounded bounded(1);
  std::size_t runs = 0;
  for (; bounded.next(); ++runs) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(bounded.is_new(), bounded.deviations() == 0 || i >= runs) << runs << " at " << i;
      bounded.choose(2);
    }
  }
  EXPECT_EQ(runs, 5U);
}

TEST(Bounded, NoticesARunThatIsNotDeterministic) {
  Bounded fewer(1);
  ASSERT_TRUE(fewer.next());
  for (int i = 0; i < 3; ++i) fewer.choose(3);
  ASSERT_TRUE(fewer.next());
  EXPECT_THROW(fewer.choose(1), PlatformError);

  Bounded shorter(1);
  ASSERT_TRUE(shorter.next());
  shorter.choose(2);
  ASSERT_TRUE(shorter.next());
  EXPECT_THROW(shorter.next(), PlatformError);
}

}  // namespace
}  // namespace perdura::strategies::test
