// The estimate of work whose parts cost very different times, as the cells of guarantees do.
#include "harness/run/time_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace perdura::harness {
namespace {

using Seconds = TimeLeft::Seconds;

struct Part {
  std::string kind;
  Seconds cost;
};

// A part of each kind comes first; then all cheap ones, and all dear ones at the end.
std::vector<Part> parts_in_order() {
  std::vector<Part> parts{{"cheap", Seconds(1)}, {"dear", Seconds(50)}};
  parts.insert(parts.end(), 99, {"cheap", Seconds(1)});
  parts.insert(parts.end(), 12, {"dear", Seconds(50)});
  return parts;
}

TEST(TimeLeft, IsExactWhereEachKindCostsItsOwn) {
  // A machine that is loaded, or has several workers, takes another time than the parts do.
  for (const double pace : {0.5, 1.0, 7.0}) {
    TimeLeft estimate({{"cheap", 100}, {"dear", 13}});
    const auto parts = parts_in_order();
    Seconds spent{};
    Seconds to_do{};
    for (const Part& part : parts) to_do += part.cost;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      estimate.ended(parts[i].kind, parts[i].cost);
      spent += parts[i].cost;
      to_do -= parts[i].cost;
      const auto left = estimate.left(spent * pace);
      if (i == 0) {
        EXPECT_FALSE(left) << "nothing is known of the dear ones";
      } else {
        ASSERT_TRUE(left);
        EXPECT_NEAR(left->count(), to_do.count() * pace, 1e-6) << i;
      }
    }
  }
}

TEST(TimeLeft, IsUnknownWhileNothingHasEndedAndNeedsNoKindWithoutParts) {
  TimeLeft estimate({{"one", 2}, {"none", 0}});
  EXPECT_FALSE(estimate.left(Seconds(5)));
  estimate.ended("one", Seconds(3));
  ASSERT_TRUE(estimate.left(Seconds(3)));
  EXPECT_DOUBLE_EQ(estimate.left(Seconds(3))->count(), 3);
}

}  // namespace
}  // namespace perdura::harness
