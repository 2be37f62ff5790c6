// The U test against published tables and against counting every division of small samples.
#include "report/compare/mann_whitney.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace perdura::compare {
namespace {

using Samples = std::vector<double>;

/// Two samples without ties of which U of a is `u`: a is all below b but for what `u` asks for.
std::pair<Samples, Samples> with_u(std::size_t in_a, std::size_t in_b, std::size_t u) {
  Samples a;
  Samples b;
  for (std::size_t i = 0; i < in_b; ++i) b.push_back(static_cast<double>(i + 1));
  for (std::size_t i = 0; i < in_a; ++i) {
    const std::size_t above = std::min(u, in_b);  // so many of b are below this one
    u -= above;
    a.push_back(static_cast<double>(above) + 0.5 + static_cast<double>(i) * 1e-3);
  }
  return {a, b};
}

/// One-tailed probabilities as printed, to three digits, for U = 0, 1, 2, ...: Mann and Whitney,
/// "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other",
/// Table I.
struct TableColumn {
  std::size_t a;
  std::size_t b;
  Samples one_tailed;
};

const TableColumn kTable[] = {
    {3, 3, {0.050, 0.100, 0.200, 0.350}},
    {4, 4, {0.014, 0.029, 0.057, 0.100, 0.171, 0.243, 0.343}},
    {5, 5, {0.004, 0.008, 0.016, 0.028, 0.048, 0.075, 0.111, 0.155, 0.210}},
    {4, 8, {0.002, 0.004, 0.008, 0.014, 0.024, 0.036, 0.055, 0.077, 0.107}},
};

TEST(MannWhitney, HasThePublishedProbabilities) {
  for (const TableColumn& column : kTable) {
    for (std::size_t u = 0; u < column.one_tailed.size(); ++u) {
      const auto [a, b] = with_u(column.a, column.b, u);
      const MannWhitney test = mann_whitney(a, b);
      EXPECT_TRUE(test.exact);
      EXPECT_EQ(test.u, static_cast<double>(u));
      EXPECT_NEAR(test.p, 2 * column.one_tailed[u], 0.00101) << column.a << ' ' << column.b;
    }
  }
}

/// The largest U that is significant, two-tailed, as in the tables of critical values.
struct Critical {
  std::size_t each;
  double alpha;
  std::size_t u;
};

TEST(MannWhitney, HasThePublishedCriticalValues) {
  for (const Critical& critical :
       {Critical{5, 0.05, 2}, Critical{8, 0.05, 13}, Critical{10, 0.05, 23}, Critical{10, 0.01, 16},
        Critical{20, 0.05, 127}, Critical{20, 0.01, 105}}) {
    const auto p_of = [&](std::size_t u) {
      const auto [a, b] = with_u(critical.each, critical.each, u);
      return mann_whitney(a, b).p;
    };
    EXPECT_LE(p_of(critical.u), critical.alpha) << critical.each;
    EXPECT_GT(p_of(critical.u + 1), critical.alpha) << critical.each;
  }
}

double u_of(const Samples& a, const Samples& b) {
  double u = 0;
  for (const double of_a : a) {
    for (const double of_b : b) u += of_a > of_b ? 1 : of_a == of_b ? 0.5 : 0;
  }
  return u;
}

/// By the definition: every way to divide the samples into two parts of these sizes.
double counted_p(const Samples& a, const Samples& b) {
  Samples all = a;
  all.insert(all.end(), b.begin(), b.end());
  const double observed = u_of(a, b);
  double ways = 0;
  double below = 0;
  double above = 0;
  for (unsigned chosen = 0; chosen < 1u << all.size(); ++chosen) {
    if (static_cast<std::size_t>(std::popcount(chosen)) != a.size()) continue;
    Samples part;
    Samples rest;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ((chosen >> i & 1u) != 0 ? part : rest).push_back(all[i]);
    }
    const double u = u_of(part, rest);
    ways += 1;
    below += u <= observed ? 1 : 0;
    above += u >= observed ? 1 : 0;
  }
  return std::min(1.0, 2 * std::min(below, above) / ways);
}

// Samples of three values are full of ties, of all kinds.
TEST(MannWhitney, CountsEveryDivisionOfSmallSamplesWithTies) {
  constexpr std::uint64_t kSeed = 100;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (const std::uint64_t values : {2u, 3u, 6u, 1000u}) {
    for (std::size_t in_a = 1; in_a <= 5; ++in_a) {
      for (std::size_t in_b = 1; in_b <= 5; ++in_b) {
        Samples a(in_a);
        Samples b(in_b);
        for (double& sample : a) sample = static_cast<double>(random() % values);
        for (double& sample : b) sample = static_cast<double>(random() % values);
        const MannWhitney test = mann_whitney(a, b);
        EXPECT_DOUBLE_EQ(test.u, u_of(a, b));
        EXPECT_NEAR(test.p, counted_p(a, b), 1e-12);
        EXPECT_NEAR(test.p, mann_whitney(b, a).p, 1e-12) << "whichever is called a";
      }
    }
  }
}

TEST(MannWhitney, OfManySamplesIsTheNormalApproximationWithBothCorrections) {
  Samples a;
  Samples b;
  for (int i = 0; i < 30; ++i) {
    a.push_back(i % 5);
    b.push_back(i % 5 + (i % 3 == 0 ? 1 : 0));
  }
  const MannWhitney test = mann_whitney(a, b);
  EXPECT_FALSE(test.exact);
  // Ties: of the values 0 to 5, 10, 12, 12, 12, 12, 2 samples are equal.
  const double ties = (1000 - 10) + 4 * (1728 - 12) + (8 - 2);
  const double variance = 900.0 / 12 * (61 - ties / (60 * 59));
  const double z = (std::abs(u_of(a, b) - 450) - 0.5) / std::sqrt(variance);
  EXPECT_GT(z, 0.5);
  EXPECT_NEAR(test.p, std::erfc(z / std::sqrt(2.0)), 1e-12);
}

// Where one takes over from the other, the approximation is a little too careful, never too bold.
TEST(MannWhitney, GoesOverFromCountingToTheNormalDistributionOnTheSafeSide) {
  for (const std::size_t u : {150u, 180u, 220u, 270u}) {
    const auto [a, b] = with_u(25, 25, u);
    const double exact = mann_whitney(a, b).p;
    const double z = (312.5 - static_cast<double>(u) - 0.5) / std::sqrt(625.0 * 51 / 12);
    const double approximation = std::erfc(z / std::sqrt(2.0));
    EXPECT_GE(approximation, 0.99 * exact) << u;
    EXPECT_LE(approximation, 1.3 * exact) << u;
  }
}

TEST(MannWhitney, FindsNothingInEqualSamplesOrNone) {
  EXPECT_EQ(mann_whitney(Samples{5, 5, 5}, Samples{5, 5}).p, 1.0);
  EXPECT_EQ(mann_whitney(Samples(40, 5.0), Samples(40, 5.0)).p, 1.0);
  EXPECT_EQ(mann_whitney(Samples{}, Samples{5}).p, 1.0);
  EXPECT_EQ(mann_whitney(Samples{5}, Samples{6}).p, 1.0);
}

TEST(SmallestP, IsThatOfSamplesThatDoNotOverlap) {
  EXPECT_NEAR(smallest_p(3, 3), 0.1, 1e-12);
  for (std::size_t a = 1; a <= 12; ++a) {
    for (std::size_t b = 1; b <= 12; ++b) {
      const auto [low, high] = with_u(a, b, 0);
      EXPECT_NEAR(smallest_p(a, b), mann_whitney(low, high).p, 1e-12) << a << ' ' << b;
    }
  }
}

TEST(RepetitionsNeeded, AreTheFewestThatReachAlphaAfterCorrection) {
  EXPECT_EQ(repetitions_needed(0.05, 1), 4u);
  EXPECT_EQ(repetitions_needed(0.01, 1), 5u);
  for (const double alpha : {0.05, 0.01, 0.001}) {
    for (std::size_t comparisons = 1; comparisons < 500; comparisons *= 2) {
      const std::size_t needed = repetitions_needed(alpha, comparisons);
      const double correction = static_cast<double>(comparisons);
      EXPECT_LE(smallest_p(needed, needed) * correction, alpha);
      EXPECT_GT(smallest_p(needed - 1, needed - 1) * correction, alpha);
    }
  }
}

TEST(RatioInterval, TakesTheRanksOfTheCriticalValues) {
  // All ratios are distinct powers of 2; the critical U of 4 and 4 samples at 5 % is 0, so that one
  // ratio lies outside on each side: none is left out, and the ends are the extremes.
  const Samples a{1, 2, 4, 8};
  const Samples b{0x1p10, 0x1p20, 0x1p30, 0x1p40};
  const auto interval = ratio_interval(a, b);
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->low, 0x1p7);
  EXPECT_EQ(interval->high, 0x1p40);
  EXPECT_FALSE(ratio_interval(Samples{1, 2, 3}, Samples{1, 2, 3}).has_value()) << "90 % at best";
  EXPECT_FALSE(ratio_interval(Samples{0, 1, 2, 3}, b).has_value());
  EXPECT_FALSE(ratio_interval(a, Samples{}).has_value());
}

double normal(std::mt19937_64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return sum;
}

// Exactly when the interval excludes 1, the test is significant at 5 %: they use the same ranks.
TEST(RatioInterval, ExcludesOneExactlyIfTheTestIsSignificantAndHoldsTheTruth) {
  constexpr std::uint64_t kSeed = 101;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (const std::size_t size : {4u, 7u, 26u}) {
    constexpr int kTrials = 1000;
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Samples a(size);
      Samples b(size);
      const double factor = trial % 2 == 0 ? 1.0 : 1.5;
      for (double& sample : a) sample = std::exp(0.3 * normal(random));
      for (double& sample : b) sample = factor * std::exp(0.3 * normal(random));
      const auto interval = ratio_interval(a, b);
      ASSERT_TRUE(interval.has_value());
      const bool excluded = interval->low > 1 || interval->high < 1;
      EXPECT_EQ(excluded, mann_whitney(a, b).p <= 0.05) << size << " of each, trial " << trial;
      held += interval->low <= factor && factor <= interval->high ? 1 : 0;
    }
    EXPECT_GE(held, 0.95 * kTrials - 4 * std::sqrt(0.95 * 0.05 * kTrials)) << size;
  }
}

TEST(ShiftFactor, IsTheMedianOfAllRatios) {
  EXPECT_EQ(shift_factor(Samples{2}, Samples{3}), 1.5);
  EXPECT_EQ(shift_factor(Samples{1, 2, 4}, Samples{1}), 0.5);
  EXPECT_EQ(shift_factor(Samples{1, 4}, Samples{2}), 1.0) << "between 1/2 and 2 by logarithms";
  EXPECT_EQ(shift_factor(Samples{3, 7, 9}, Samples{3, 7, 9}), 1.0);
  EXPECT_FALSE(shift_factor(Samples{0, 1}, Samples{1}).has_value());
  EXPECT_FALSE(shift_factor(Samples{1}, Samples{-1}).has_value());
  EXPECT_FALSE(shift_factor(Samples{}, Samples{1}).has_value());
}

// The ratio of the medians is sometimes outside of the interval, and would stand beside it.
TEST(ShiftFactor, LiesWithinTheIntervalAlways) {
  constexpr std::uint64_t kSeed = 102;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  const auto median = [](const Samples& samples) { return measure::summarize(samples).median; };
  int medians_outside = 0;
  for (const std::size_t size_a : {4u, 5u, 9u, 20u}) {
    for (const std::size_t size_b : {4u, 7u, 20u, 40u}) {
      for (int trial = 0; trial < 100; ++trial) {
        Samples a(size_a);
        Samples b(size_b);
        // Two modes, between which a median jumps.
        for (Samples* samples : {&a, &b}) {
          for (double& sample : *samples) sample = (random() % 2 ? 1 : 4) + 0.1 * normal(random);
        }
        const auto interval = ratio_interval(a, b);
        const auto factor = shift_factor(a, b);
        ASSERT_TRUE(interval && factor);
        EXPECT_LE(interval->low, *factor);
        EXPECT_GE(interval->high, *factor);
        EXPECT_NEAR(*factor * *shift_factor(b, a), 1, 1e-12) << "the same from both sides";
        const double of_medians = median(b) / median(a);
        if (of_medians < interval->low || of_medians > interval->high) ++medians_outside;
      }
    }
  }
  EXPECT_GT(medians_outside, 0);
}

TEST(Holm, IsTheExampleOfStepDown) {
  // 0.005 * 4, 0.01 * 3, then 0.03 * 2 = 0.06, and 0.04 no less than that.
  const Samples corrected = holm({0.01, 0.04, 0.03, 0.005});
  const Samples expected{0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(corrected[i], expected[i], 1e-12);
  EXPECT_EQ(holm({0.9, 0.8}), (Samples{1, 1}));
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace perdura::compare
