#include "harness/measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace perdura::measure {
namespace {

using Samples = std::vector<double>;

TEST(Summary, DescribesItsSamples) {
  const Summary summary = summarize(Samples{4, 2, 4, 5, 5, 7, 9, 4});
  EXPECT_EQ(summary.count, 8U);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.median, 4.5);
  EXPECT_DOUBLE_EQ(summary.standard_deviation, std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(summary.min, 2);
  EXPECT_DOUBLE_EQ(summary.max, 9);
  EXPECT_DOUBLE_EQ(summarize(Samples{3, 1, 2}).median, 2);
}

TEST(Summary, IsDefinedForOneSampleAndNone) {
  EXPECT_DOUBLE_EQ(summarize(Samples{3}).mean, 3);
  EXPECT_DOUBLE_EQ(summarize(Samples{3}).median, 3);
  EXPECT_DOUBLE_EQ(summarize(Samples{3}).standard_deviation, 0);
  EXPECT_EQ(summarize(Samples{}).count, 0U);
}

// Large offsets must not drown the deviation: 1e9 ns plus or minus one.
TEST(Summary, DoesNotCancel) {
  EXPECT_DOUBLE_EQ(summarize(Samples{1e9 - 1, 1e9, 1e9 + 1}).standard_deviation, 1.0);
}

TEST(StudentT, HasTheCriticalValuesOfTheTables) {
  EXPECT_NEAR(student_t_critical(1, 0.95), 12.706, 0.0005);
  EXPECT_NEAR(student_t_critical(2, 0.95), 4.303, 0.0005);
  EXPECT_NEAR(student_t_critical(4, 0.95), 2.776, 0.0005);
  EXPECT_NEAR(student_t_critical(9, 0.95), 2.262, 0.0005);
  EXPECT_NEAR(student_t_critical(30, 0.95), 2.042, 0.0005);
  EXPECT_NEAR(student_t_critical(1, 0.99), 63.657, 0.0005);
  EXPECT_NEAR(student_t_critical(5, 0.90), 2.015, 0.0005);
  EXPECT_NEAR(student_t_critical(100'000, 0.95), 1.960, 0.0005);
}

TEST(MeanInterval, SurroundsTheMean) {
  const auto interval = mean_interval(Samples{1, 2, 3, 4, 5});
  ASSERT_TRUE(interval.has_value());
  const double margin = 2.776445 * std::sqrt(2.5 / 5);
  EXPECT_NEAR(interval->low, 3 - margin, 1e-5);
  EXPECT_NEAR(interval->high, 3 + margin, 1e-5);
}

TEST(MeanInterval, NeedsTwoSamplesAndAConfidence) {
  EXPECT_FALSE(mean_interval(Samples{}).has_value());
  EXPECT_FALSE(mean_interval(Samples{1}).has_value());
  EXPECT_FALSE(mean_interval(Samples{1, 2}, 1.0).has_value());
  EXPECT_FALSE(mean_interval(Samples{1, 2}, 0.0).has_value());
}

// The binomial tables: for six samples the extremes (97 %), for ten the second of each side (98 %),
// for twenty the sixth (96 %).
TEST(MedianInterval, TakesTheRanksOfTheBinomialTables) {
  Samples samples;
  for (int i = 1; i <= 5; ++i) samples.push_back(i);
  EXPECT_FALSE(median_interval(samples).has_value()) << "five samples reach only 94 %";
  samples.push_back(6);
  ASSERT_TRUE(median_interval(samples).has_value());
  EXPECT_DOUBLE_EQ(median_interval(samples)->low, 1);
  EXPECT_DOUBLE_EQ(median_interval(samples)->high, 6);
  for (int i = 7; i <= 10; ++i) samples.push_back(i);
  EXPECT_DOUBLE_EQ(median_interval(samples)->low, 2);
  EXPECT_DOUBLE_EQ(median_interval(samples)->high, 9);
  for (int i = 11; i <= 20; ++i) samples.push_back(i);
  EXPECT_DOUBLE_EQ(median_interval(samples)->low, 6);
  EXPECT_DOUBLE_EQ(median_interval(samples)->high, 15);
  EXPECT_FALSE(median_interval(Samples{}).has_value());
}

// What the confidence promises: of many experiments, that share of intervals holds the truth.
TEST(Intervals, ContainTheTruthAsOftenAsTheySay) {
  constexpr std::uint64_t kSeed = 80;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  constexpr int kExperiments = 4000;
  int mean_hits = 0;
  int median_hits = 0;
  for (int experiment = 0; experiment < kExperiments; ++experiment) {
    Samples samples(10);
    for (double& sample : samples) {
      // A sum of twelve uniform numbers is normal enough, with mean and median 6.
      sample = 0;
      for (int i = 0; i < 12; ++i) sample += static_cast<double>(random() >> 11) * 0x1p-53;
    }
    const auto holds_six = [](const Interval& interval) {
      return interval.low <= 6 && 6 <= interval.high;
    };
    mean_hits += holds_six(*mean_interval(samples)) ? 1 : 0;
    median_hits += holds_six(*median_interval(samples)) ? 1 : 0;
  }
  const auto bound = [](double share) { return 5 * std::sqrt(share * (1 - share) * kExperiments); };
  EXPECT_NEAR(mean_hits, 0.95 * kExperiments, bound(0.95));
  EXPECT_NEAR(median_hits, 0.97852 * kExperiments, bound(0.97852));  // 1 - 2 * 11 / 1024
}

}  // namespace
}  // namespace perdura::measure
