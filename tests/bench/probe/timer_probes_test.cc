#include "bench/probe/timer_probes.h"

#include <gtest/gtest.h>

#include "platform/shm/shm_platform.h"

namespace perdura::bench {
namespace {

// How much longer it lasts is the host's business.
TEST(TimerProbes, ASleepLastsAtLeastAsLongAsItWasAskedFor) {
  Effort effort = Effort::of(false, 1, true);
  effort.repetitions = 2;
  effort.loads = 3000;
  const ProbeSet set = timer_probes(effort, false);
  ASSERT_EQ(set.probes.size(), 2U);
  EXPECT_EQ(set.probes[0].setting.operation, "usleep(2)") << "as a program has it by default";
  for (const Probe& probe : set.probes) {
    ShmPlatform platform{ShmOptions{}};
    const std::vector<double> values = probe.measure(platform, alone);
    ASSERT_EQ(values.size(), 2U) << label(probe.setting);
    for (const double value : values) EXPECT_GE(value, 2000) << label(probe.setting);
  }
}

TEST(TimerProbes, TheModelHasNoTimers) {
  const ProbeSet set = timer_probes(Effort::of(true, 1, true), true);
  EXPECT_TRUE(set.probes.empty());
  ASSERT_EQ(set.unanswered.size(), 1U);
  EXPECT_EQ(set.unanswered[0].probe, "timer");
}

}  // namespace
}  // namespace perdura::bench
