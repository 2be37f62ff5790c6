#include "platform/faults/fault_plan.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::faults {
namespace {

TEST(FaultPlan, ALineOfTextIsThePlan) {
  const FaultPlan usual;
  EXPECT_EQ(usual.text(), "seed=1");
  EXPECT_EQ(FaultPlan::parse(""), usual);
  const FaultPlan plan{.seed = 7,
                       .lose = 0.125,
                       .lose_at = 12,
                       .hold = 0.5,
                       .held = {Microseconds(1), Nanoseconds(50'500)},
                       .duplicate = 0.1,
                       .slow = {Picoseconds(0), Picoseconds(7)},
                       .die_at = 3,
                       .die_when = DeathStep::at_completion,
                       .die_after = Milliseconds(2)};
  EXPECT_EQ(plan.text(),
            "seed=7 lose=0.125 lose-at=12 hold=0.5 held=1us..50500ns duplicate=0.1 slow=0ms..7ps "
            "die-at=3 die-when=at-completion die-after=2ms");
  EXPECT_EQ(FaultPlan::parse(plan.text()), plan);
}

TEST(FaultPlan, AMistakeIsRefusedByName) {
  for (const char* text : {"loose=1", "lose", "lose=2", "lose=x", "seed=-1", "held=1us",
                           "slow=2..3", "held=2us..1us", "die-when=never", "die-after=-1ns"}) {
    try {
      FaultPlan::parse(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace perdura::faults
