// How warm-up and measured interval end: by operations, by time, or when the rate is steady.
#include <gtest/gtest.h>

#include "timed_run.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Verdict;

class StretchTest : public TimedRunTest {
 protected:
  std::size_t warm_up_operations(const Measurement& result) const {
    return test::timed_operations().size() - result.operations();
  }
};

TEST_F(StretchTest, ADurationEndsAClosedLoop) {
  point_.settings.set("duration_ms", 5);
  EXPECT_EQ(run().operations(), 500U);
  point_.settings.set("queue_depth", 3);
  point_.parameters["in_parallel"] = 1;
  own_workload(point_).spec.operation_count = 10'000;
  EXPECT_EQ(run().operations(), 1500U);
}

TEST_F(StretchTest, TheOperationsEndItIfTheyAreOverBefore) {
  point_.settings.set("duration_ms", 1000);
  EXPECT_EQ(run().operations(), 1000U);
}

TEST_F(StretchTest, AllThatIsDueWithinTheDurationIsPerformed) {
  open_loop("fixed", 20'000);
  own_workload(point_).spec.operation_count = 100'000;
  point_.settings.set("duration_ms", 50);
  point_.settings.set("clients", 2);
  EXPECT_EQ(run().operations(), 1000U);
  // The store takes 10 us for each of what comes every 5 us.
  open_loop("fixed", 200'000);
  const Measurement saturated = run();
  EXPECT_EQ(saturated.operations(), 10'000U);
  EXPECT_EQ(saturated.elapsed, Microseconds(100'000));
  EXPECT_EQ(saturated.saturated(), true);
}

TEST_F(StretchTest, ARampEndsTheWarmUp) {
  point_.settings.set("ramp_ms", 2);
  point_.settings.set("warmup", 10'000);
  const Measurement result = run();
  EXPECT_EQ(result.operations(), 1000U);
  EXPECT_EQ(warm_up_operations(result), 200U);
  point_.settings.set("warmup", 50);
  EXPECT_EQ(warm_up_operations(run()), 50U);
}

// The store gets faster for 20 ms. A line through 10 ms of it still rises then; once the window has
// left those 20 ms, it does not.
class SteadyRunTest : public StretchTest {
 protected:
  SteadyRunTest() {
    point_.parameters["settling_ms"] = 20;
    point_.parameters["in_parallel"] = 1;
    point_.settings.set("warmup", 1'000'000);
    point_.settings.set("steady_slope", 0.01);
    point_.settings.set("steady_window_ms", 10);
  }
};

TEST_F(SteadyRunTest, MeasuringBeginsWhenTheRateIsSteady) {
  for (const std::uint64_t clients : {1, 4}) {
    point_.settings.set("clients", clients);
    point_.roles = client_server(clients == 1 ? 1 : 2);
    const Measurement result = run();
    EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
    EXPECT_EQ(result.operations(), 1000U);
    EXPECT_EQ(service(result).min(), 10'000U);
    EXPECT_EQ(service(result).max(), 10'000U);
    const Time begin = served(1000).front().start;
    EXPECT_GT(begin, Time(Microseconds(25'000)));
    EXPECT_LT(begin, Time(Microseconds(35'000)));
    const auto first = run().serialize();
    EXPECT_EQ(first, result.serialize()) << "on sim it is always the same moment";
  }
}

TEST_F(SteadyRunTest, ARampIsTheTimeBeforeTheFirstLook) {
  point_.settings.set("ramp_ms", 100);
  EXPECT_EQ(run().verdict, Verdict::valid);
  EXPECT_GE(served(1000).front().start, Time(Microseconds(110'000)));
}

TEST_F(SteadyRunTest, AnOpenLoopIsSteadyAtOnce) {
  open_loop("fixed", 10'000);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_LT(served(1000).front().start, Time(Microseconds(12'000)));
}

TEST_F(SteadyRunTest, AStoreThatGetsSlowerAndSlowerIsNotMeasured) {
  point_.parameters["settling_ms"] = 0;
  point_.parameters["growing"] = 1;
  point_.settings.set("warmup", 5000);
  point_.settings.set("clients", 2);
  point_.roles = client_server(2);
  const Measurement result = run();
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_EQ(result.reason,
            "no steady state within the 5000 operations of the warm-up; raise warmup, steady_slope "
            "or steady_window_ms");
}

TEST_F(SteadyRunTest, TooShortAWarmUpIsNotSteady) {
  point_.settings.set("warmup", 10);
  EXPECT_EQ(run().verdict, Verdict::invalid);
}

}  // namespace
}  // namespace perdura::bench
