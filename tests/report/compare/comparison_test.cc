// What is found, how often by mistake, and what is said if nothing can be found.
#include "report/compare/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "report/compare/mann_whitney.h"

namespace perdura::compare {
namespace {

Point point(const std::string& system) {
  std::vector<std::string> values(point_columns().size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (point_columns()[i] == "system") values[i] = system;
  }
  return values;
}

Pair pair(const std::string& system, std::vector<double> a, std::vector<double> b,
          const std::string& quantity = "latency_p50_us") {
  return {point(system), quantity, std::move(a), std::move(b)};
}

Comparison compared(std::vector<Pair> pairs, bool modelled, const Options& options = {}) {
  Matching matching;
  matching.modelled = modelled;
  matching.pairs = std::move(pairs);
  return compare(std::move(matching), options);
}

/// A run's median latency varies from repetition to repetition by about 2 %, and now and then a
/// disturbed one is much slower.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}

  std::vector<double> repetitions(std::size_t count, double latency) {
    std::vector<double> samples(count);
    for (double& sample : samples) {
      double normal = -6;
      for (int i = 0; i < 12; ++i) normal += uniform();
      sample = latency * std::exp(0.02 * normal) * (uniform() < 0.05 ? 1.3 : 1.0);
    }
    return samples;
  }

 private:
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
};

TEST(Compare, ARunWithItselfFindsNothing) {
  Noise noise(110);
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; ++i) {
    const auto samples = noise.repetitions(10, 60);
    pairs.push_back(pair("erda", samples, samples));
  }
  for (const bool modelled : {false, true}) {
    const Comparison comparison = compared(pairs, modelled, {.threshold_percent = 0});
    EXPECT_EQ(comparison.count(ChangeKind::unchanged), 20U);
    EXPECT_EQ(comparison.tested, 20U);
    for (const QuantityComparison& entry : comparison.entries) EXPECT_EQ(entry.p, 1.0);
  }
}

// Two runs of the same thing: the probability of any alarm among ten comparisons is alpha. Without
// the correction it would be 40 %.
TEST(Compare, HasNoMoreFalseAlarmsThanAlphaAmongAllComparisons) {
  constexpr std::uint64_t kSeed = 111;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Noise noise(kSeed);
  constexpr int kTrials = 1500;
  const Options options{.threshold_percent = 0, .alpha = 0.05};
  int alarms = 0;
  int without_correction = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Pair> pairs;
    bool any = false;
    for (int i = 0; i < 10; ++i) {
      pairs.push_back(pair("erda", noise.repetitions(8, 60), noise.repetitions(8, 60)));
      any = any || mann_whitney(pairs.back().a, pairs.back().b).p <= options.alpha;
    }
    without_correction += any ? 1 : 0;
    const Comparison comparison = compared(std::move(pairs), false, options);
    const bool alarm =
        comparison.count(ChangeKind::worse) + comparison.count(ChangeKind::better) > 0;
    alarms += alarm ? 1 : 0;
  }
  const auto deviation = [](double share) { return std::sqrt(share * (1 - share) * kTrials); };
  EXPECT_LE(alarms, 0.05 * kTrials + 4 * deviation(0.05));
  EXPECT_GE(alarms, 1) << "a test that never finds anything would pass as well";
  EXPECT_GT(without_correction, 0.3 * kTrials);
}

// 5 % slower, as noisy as above, among nine points that are as they were.
TEST(Compare, FindsOnePointThatIsFivePercentSlower) {
  constexpr std::uint64_t kSeed = 112;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Noise noise(kSeed);
  constexpr int kTrials = 200;
  int found = 0;
  int alarms = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 10; ++i) {
      const double slower = i == 4 ? 1.05 : 1.0;
      pairs.push_back(pair(i == 4 ? "slow" : "same", noise.repetitions(20, 60),
                           noise.repetitions(20, 60 * slower)));
    }
    const Comparison comparison = compared(std::move(pairs), false);
    const QuantityComparison& first = comparison.entries.front();
    found += first.change == ChangeKind::worse && first.point == point("slow") ? 1 : 0;
    alarms += comparison.count(ChangeKind::worse) > 1 ? 1 : 0;
  }
  EXPECT_GE(found, 0.9 * kTrials);
  EXPECT_LE(alarms, 0.01 * kTrials + 4 * std::sqrt(0.01 * 0.99 * kTrials));
}

TEST(Compare, KnowsOfEachQuantityWhatIsWorse) {
  const std::vector<double> low{1, 1.1, 1.2, 1.3, 1.4, 1.5};
  const std::vector<double> high{2, 2.1, 2.2, 2.3, 2.4, 2.5};
  for (const std::string& quantity : comparable_quantities()) {
    const bool more_is_better = quantity == "throughput_ops_s";
    const Comparison rising = compared({pair("erda", low, high, quantity)}, false);
    EXPECT_EQ(rising.entries[0].change, more_is_better ? ChangeKind::better : ChangeKind::worse);
    const Comparison falling = compared({pair("erda", high, low, quantity)}, false);
    EXPECT_EQ(falling.entries[0].change, more_is_better ? ChangeKind::worse : ChangeKind::better);
  }
}

TEST(Compare, TheChangeIsTheEstimateThatItsIntervalBelongsTo) {
  const QuantityComparison entry =
      compared({pair("erda", {1, 1, 1, 4, 4}, {1, 1, 4, 4, 4})}, false).entries[0];
  EXPECT_EQ(entry.a, 1);
  EXPECT_EQ(entry.b, 4);
  EXPECT_EQ(entry.ratio, 1) << "of 25 pairs, 12 are equal and 9 have the higher one in b";
  const QuantityComparison with_zero =
      compared({pair("erda", {0, 2, 4}, {3, 6, 9})}, false).entries[0];
  EXPECT_EQ(with_zero.ratio, 3) << "of the medians";
}

TEST(Compare, AChangeWithinTheThresholdIsNoneHoweverSignificant) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 10; ++i) {
    a.push_back(100 + i * 0.01);
    b.push_back(101.5 + i * 0.01);
  }
  const Comparison within = compared({pair("erda", a, b)}, false);
  EXPECT_LT(*within.entries[0].p, 0.001);
  EXPECT_EQ(within.entries[0].change, ChangeKind::unchanged);
  const Comparison beyond = compared({pair("erda", a, b)}, false, {.threshold_percent = 1});
  EXPECT_EQ(beyond.entries[0].change, ChangeKind::worse);
  ASSERT_TRUE(beyond.entries[0].interval.has_value());
  EXPECT_NEAR(beyond.entries[0].interval->low, 1.015, 0.001);
  EXPECT_NEAR(beyond.entries[0].interval->high, 1.015, 0.001);
}

TEST(Compare, ASimulationOfOtherSeedsIsNotWithoutNoise) {
  Pair other = pair("erda", {10}, {11});
  other.same_draws = false;
  const Comparison comparison = compared({pair("erda", {10}, {11}), other}, true);
  EXPECT_EQ(comparison.by_threshold, 1U);
  EXPECT_EQ(comparison.count(ChangeKind::worse), 1U);
  EXPECT_EQ(comparison.count(ChangeKind::undecided), 1U);
}

TEST(Compare, AChangeBeyondTheThresholdThatIsNotSignificantIsUnclear) {
  const std::vector<double> a{10, 20, 30, 40, 50, 60};
  const std::vector<double> b{11, 21, 31, 42, 51, 61};
  const Comparison wide = compared({pair("erda", a, b)}, false);
  EXPECT_GT(change_percent(wide.entries[0]), 2);
  EXPECT_EQ(wide.entries[0].change, ChangeKind::unclear);
  const Comparison within = compared({pair("erda", a, b)}, false, {.threshold_percent = 10});
  EXPECT_EQ(within.entries[0].change, ChangeKind::unchanged);
}

// 3 and 3 repetitions have p = 0.1 at best: on a real machine that is no verdict, however far apart
// they are. A simulated point has no noise.
TEST(Compare, WithTooFewRepetitionsDecidesOnlyWhatIsSimulated) {
  const std::vector<Pair> pairs{pair("erda", {10, 11, 12}, {20, 21, 22}),
                                pair("redo-logging", {20, 21, 22}, {10, 11, 12}),
                                pair("read-after-write", {20}, {20.1})};
  const Comparison measured = compared(pairs, false);
  EXPECT_EQ(measured.count(ChangeKind::undecided), 3U);
  EXPECT_EQ(measured.tested, 0U);
  EXPECT_EQ(measured.repetitions_needed, 6U);  // 2 / C(12, 6) * 3 = 0.0065; of 5 it is 0.024
  const Comparison simulated = compared(pairs, true);
  EXPECT_EQ(simulated.by_threshold, 3U);
  EXPECT_EQ(simulated.count(ChangeKind::worse), 1U);
  EXPECT_EQ(simulated.count(ChangeKind::better), 1U);
  EXPECT_EQ(simulated.count(ChangeKind::unchanged), 1U);
  EXPECT_FALSE(simulated.entries[0].p.has_value());
}

TEST(Compare, CorrectsForThePointsThatCanBeTestedOnly) {
  std::vector<Pair> pairs{pair("erda", {1, 2, 3, 4, 5, 6}, {11, 12, 13, 14, 15, 16})};
  pairs.push_back(pair("redo-logging", {1}, {2}));
  const Comparison comparison = compared(pairs, false);
  EXPECT_EQ(comparison.tested, 1U);
  EXPECT_NEAR(*comparison.entries[0].p, 2.0 / 924, 1e-12);
  EXPECT_EQ(comparison.entries[0].change, ChangeKind::worse);
  EXPECT_EQ(comparison.entries[1].change, ChangeKind::undecided);
}

// Erda reads without the server's CPU: a cost of 0.
TEST(Compare, ACostThatWasZeroIsInfinitelyWorseAndStayingZeroIsNoChange) {
  const Comparison comparison =
      compared({pair("erda", {0}, {0}, "server_cpu_us_per_op"),
                pair("redo-logging", {0}, {0.5}, "server_cpu_us_per_op"),
                pair("read-after-write", {0.5}, {0}, "server_cpu_us_per_op")},
               true);
  EXPECT_EQ(comparison.entries[0].point, point("redo-logging"));
  EXPECT_EQ(comparison.entries[0].change, ChangeKind::worse);
  EXPECT_EQ(change_percent(comparison.entries[0]), std::numeric_limits<double>::infinity());
  EXPECT_EQ(comparison.entries[1].change, ChangeKind::unchanged);
  EXPECT_EQ(comparison.entries[2].change, ChangeKind::better);
  EXPECT_EQ(change_percent(comparison.entries[2]), -100);
}

TEST(Compare, PutsTheWorstFirst) {
  const Comparison comparison =
      compared({pair("a", {100}, {90}), pair("b", {100}, {110}), pair("c", {100}, {101}),
                pair("d", {100}, {80}, "throughput_ops_s"), pair("e", {100}, {100})},
               true);
  std::string order;
  for (const QuantityComparison& entry : comparison.entries) {
    for (const std::string& value : entry.point) order += value;
  }
  EXPECT_EQ(order, "dbcea");
}

}  // namespace
}  // namespace perdura::compare
