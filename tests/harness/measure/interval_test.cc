// Confidence intervals of what a histogram holds: ranks by the definition, and how often the
// intervals hold the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/measure/histogram.h"
#include "harness/measure/statistics.h"

namespace perdura::measure {
namespace {

// The distribution of the number of successes in `count` trials, by Pascal's triangle.
std::vector<double> binomial(std::size_t count, double probability) {
  std::vector<double> shares(count + 1);
  shares[0] = 1;
  for (std::size_t trial = 1; trial <= count; ++trial) {
    for (std::size_t k = trial; k > 0; --k) {
      shares[k] = shares[k] * (1 - probability) + shares[k - 1] * probability;
    }
    shares[0] *= 1 - probability;
  }
  return shares;
}

TEST(PercentileRanks, AreTheNarrowestThatKeepBothTails) {
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9}) {
    for (std::size_t count = 1; count <= 600; count += count < 120 ? 1 : 97) {
      const std::vector<double> shares = binomial(count, percent / 100);
      // Of the samples up to the percentile, at most 2.5 % of the cases have fewer than `low`, and
      // at most 2.5 % have `high` or more.
      std::size_t low = 0;
      for (double below = shares[0]; below <= 0.025; below += shares[low]) ++low;
      std::size_t high = count + 1;
      for (double above = shares[count]; above <= 0.025; above += shares[high - 1]) --high;
      const auto ranks = percentile_ranks(count, percent);
      ASSERT_EQ(ranks.has_value(), low >= 1 && high <= count) << count << " samples, " << percent;
      if (!ranks) continue;
      ASSERT_EQ(ranks->low, low) << count << " samples, " << percent;
      ASSERT_EQ(ranks->high, high) << count << " samples, " << percent;
    }
  }
}

// Of many samples the binomial distribution is nearly normal, with a correction for its skewness.
TEST(PercentileRanks, OfMillionsAreThoseOfTheNormalDistribution) {
  for (const double count : {1e6, 1e8, 1e9}) {
    for (const double percent : {50.0, 99.0, 99.99}) {
      const double share = percent / 100;
      const double deviation = std::sqrt(count * share * (1 - share));
      const double skew = (1 - 2 * share) * (1.959964 * 1.959964 - 1) / 6;
      const auto ranks = percentile_ranks(static_cast<std::uint64_t>(count), percent);
      ASSERT_TRUE(ranks.has_value());
      const double tolerance = 1.5 + 1e-6 * deviation;
      EXPECT_NEAR(static_cast<double>(ranks->low), count * share - 1.959964 * deviation + skew,
                  tolerance);
      EXPECT_NEAR(static_cast<double>(ranks->high), count * share + 1.959964 * deviation + skew + 1,
                  tolerance);
    }
  }
}

TEST(PercentileRanks, ExistWhereverAPercentileHasTenSamplesBeyond) {
  for (const double percent : {50.0, 90.0, 99.0, 99.9, 99.99}) {
    Histogram histogram;
    std::uint64_t count = 1;
    for (; !histogram.percentile_if_enough(percent); ++count) histogram.record(7);
    ASSERT_EQ(histogram.count(), std::llround(10 / (1 - percent / 100)));
    EXPECT_TRUE(histogram.percentile_interval(percent).has_value()) << percent;
  }
}

TEST(PercentileRanks, NeedSamplesAPercentileAndAConfidence) {
  EXPECT_FALSE(percentile_ranks(0, 50).has_value());
  EXPECT_FALSE(percentile_ranks(100, 0).has_value());
  EXPECT_FALSE(percentile_ranks(100, 100).has_value());
  EXPECT_FALSE(percentile_ranks(100, 50, 0).has_value());
  EXPECT_FALSE(percentile_ranks(100, 50, 1).has_value());
  EXPECT_FALSE(percentile_ranks(5, 50).has_value()) << "five samples reach only 94 %";
  EXPECT_FALSE(Histogram().percentile_interval(50).has_value());
}

TEST(PercentileInterval, HasTheEndsOfTheBucketsThatHoldTheRanks) {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 20; ++i) histogram.record(i * 1'000'000);
  const auto ranks = percentile_ranks(20, 50);
  ASSERT_TRUE(ranks.has_value());
  EXPECT_EQ(ranks->low, 6U);
  EXPECT_EQ(ranks->high, 15U);
  const auto interval = histogram.percentile_interval(50);
  ASSERT_TRUE(interval.has_value());
  EXPECT_LE(interval->low, 6'000'000U);
  EXPECT_GT(interval->low, 5'994'000U);
  EXPECT_GE(interval->high, 15'000'000U);
  EXPECT_LT(interval->high, 15'015'000U);
}

TEST(PercentileInterval, OfEqualSamplesIsTheirValueEvenAboveAnHour) {
  for (const std::uint64_t value :
       {std::uint64_t{61'863}, 2 * Histogram::kMaxNanoseconds, ~std::uint64_t{0}}) {
    Histogram histogram;
    histogram.record(value, 1000);
    EXPECT_EQ(histogram.percentile_interval(50)->low, value);
    EXPECT_EQ(histogram.percentile_interval(50)->high, value);
    EXPECT_EQ(histogram.mean_interval()->low, histogram.mean());
    EXPECT_EQ(histogram.mean_interval()->high, histogram.mean());
  }
}

// Below 2,048 ns every value has its own bucket, so that nothing is lost.
TEST(MeanIntervalOfAHistogram, IsStudentsOfTheSamples) {
  Histogram histogram;
  std::vector<double> samples;
  for (std::uint64_t i = 0; i < 99; ++i) {
    const std::uint64_t value = i * i * 37 % 2000;
    histogram.record(value);
    samples.push_back(static_cast<double>(value));
  }
  EXPECT_FALSE(histogram.mean_interval().has_value()) << "99 samples are too few";
  histogram.record(1999);
  samples.push_back(1999);
  EXPECT_NEAR(histogram.mean_interval()->low, mean_interval(samples)->low, 1e-9);
  EXPECT_NEAR(histogram.mean_interval()->high, mean_interval(samples)->high, 1e-9);
  EXPECT_FALSE(histogram.mean_interval(0).has_value());
  EXPECT_FALSE(histogram.mean_interval(1).has_value());
}

TEST(MeanIntervalOfAHistogram, IsWiderByNoMoreThanTheBucketsAndNeverNarrower) {
  constexpr std::uint64_t kSeed = 90;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  Histogram histogram;
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = 1'000'000 + random() % 4096;  // hardly wider than a few buckets
    histogram.record(value);
    samples.push_back(static_cast<double>(value));
  }
  const double exact = mean_interval(samples)->high - summarize(samples).mean;
  const double found = histogram.mean_interval()->high - histogram.mean();
  EXPECT_GE(found, exact);
  EXPECT_LE(found, exact + 1.97 * 512 / std::sqrt(1000.0));
}

struct Distribution {
  std::string name;
  std::function<std::uint64_t(double)> quantile;  // the smallest value with at least this share
  double mean;                                    // of quantile(u), u uniform in (0, 1)
};

// Of whole nanoseconds, as latencies are.
std::vector<Distribution> distributions() {
  constexpr double kScale = 100'000;
  const auto exponential = [](double share) {
    return static_cast<std::uint64_t>(std::ceil(-std::log1p(-share) * kScale)) - 1;
  };
  // Nine in ten near 11 us, one in ten near 110 us: the 90th percentile is the very edge of a gap.
  const auto bimodal = [](double share) -> std::uint64_t {
    if (share <= 0.9) return 9'999 + static_cast<std::uint64_t>(std::ceil(share / 0.9 * 2'000));
    return 99'999 + static_cast<std::uint64_t>(std::ceil((share - 0.9) / 0.1 * 20'000));
  };
  return {{"constant", [](double) { return std::uint64_t{61'863}; }, 61'863},
          {"exponential", exponential, 1 / std::expm1(1 / kScale)},
          {"bimodal", bimodal, 0.9 * 10'999.5 + 0.1 * 109'999.5}};
}

double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

// Four standard deviations of the number of hits: one test in thirty thousand fails by chance, and
// the seeds are fixed.
double tolerance(int trials, double share) { return 4 * std::sqrt(share * (1 - share) / trials); }

struct Trials {
  double percent;
  int samples;  // ten beyond the percentile, the least for which points.csv has it
  int trials;
};

TEST(PercentileInterval, HoldsTheTruthAsOftenAsItSays) {
  constexpr std::uint64_t kSeed = 91;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  Histogram histogram;
  for (const Distribution& distribution : distributions()) {
    for (const Trials& plan : {Trials{50, 20, 6000}, Trials{90, 100, 6000}, Trials{99, 1000, 1500},
                               Trials{99.9, 10'000, 300}}) {
      const std::uint64_t truth = distribution.quantile(plan.percent / 100);
      int above = 0;  // the whole interval lies above the truth
      int below = 0;
      for (int trial = 0; trial < plan.trials; ++trial) {
        histogram.reset();
        for (int i = 0; i < plan.samples; ++i) {
          histogram.record(distribution.quantile(uniform(random)));
        }
        const auto interval = histogram.percentile_interval(plan.percent);
        ASSERT_TRUE(interval.has_value());
        above += interval->low > truth ? 1 : 0;
        below += interval->high < truth ? 1 : 0;
      }
      const double bound = 0.025 + tolerance(plan.trials, 0.025);
      EXPECT_LE(above, bound * plan.trials) << distribution.name << ' ' << plan.percent;
      EXPECT_LE(below, bound * plan.trials) << distribution.name << ' ' << plan.percent;
    }
  }
}

// One rank less on either side would be noticed by the test above: so much more often the interval
// of twenty samples would miss the median.
TEST(PercentileInterval, WithARankLessOnEitherSideWouldMissTooOften) {
  const std::vector<double> shares = binomial(20, 0.5);
  double missed = 0;
  for (std::size_t k = 0; k <= 6; ++k) missed += shares[k];
  EXPECT_GT(missed, 0.025 + 2 * tolerance(6000, 0.025));
}

TEST(MeanIntervalOfAHistogram, HoldsTheTruthAsOftenAsItSays) {
  constexpr std::uint64_t kSeed = 92;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  constexpr int kTrials = 3000;
  constexpr int kSamples = 1000;
  Histogram histogram;
  for (const Distribution& distribution : distributions()) {
    int hits = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      histogram.reset();
      for (int i = 0; i < kSamples; ++i) {
        histogram.record(distribution.quantile(uniform(random)));
      }
      const auto interval = histogram.mean_interval();
      ASSERT_TRUE(interval.has_value());
      hits += interval->low <= distribution.mean && distribution.mean <= interval->high ? 1 : 0;
    }
    const double bound = kTrials * tolerance(kTrials, 0.95);
    if (distribution.name == "constant") {
      EXPECT_EQ(hits, kTrials);
    } else {
      EXPECT_NEAR(hits, 0.95 * kTrials, bound) << distribution.name;
    }
  }
}

TEST(StudentT, ApproachesTheNormalDistributionFromAbove) {
  double before = student_t_critical(1, 0.95);
  for (const std::size_t degrees : {2, 10, 1000, 1001, 100'000, 10'000'000}) {
    const double critical = student_t_critical(degrees, 0.95);
    EXPECT_LT(critical, before) << degrees;
    EXPECT_GT(critical, normal_critical(0.95)) << degrees;
    before = critical;
  }
  EXPECT_NEAR(before, normal_critical(0.95), 1e-6);
}

}  // namespace
}  // namespace perdura::measure
