#include "bench/ycsb/zipfian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace perdura::ycsb {
namespace {

constexpr double kTheta = kYcsbZipfianConstant;

// Five standard deviations of a binomial count: one check in two million fails by chance.
double bound(double probability, double draws) {
  return 5 * std::sqrt(probability * (1 - probability) / draws);
}

double zeta_by_the_sum(std::uint64_t n, double theta) {
  long double sum = 0;
  for (std::uint64_t i = 1; i <= n; ++i) {
    sum += std::pow(static_cast<long double>(i), -static_cast<long double>(theta));
  }
  return static_cast<double>(sum);
}

TEST(Zeta, IsTheSumOfTheRecurrence) {
  for (double theta : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    const Zeta zeta(theta);
    for (std::uint64_t n : {1, 2, 3, 15, 16, 17, 18, 100, 1000, 54'321, 200'000}) {
      const double expected = zeta_by_the_sum(n, theta);
      EXPECT_NEAR(zeta(n), expected, 4e-15 * expected) << "n " << n << ", theta " << theta;
    }
  }
}

// YCSB's constant was made by adding up 10^10 doubles, which costs it the last digits.
TEST(Zeta, ConfirmsTheConstantOfYcsb) {
  EXPECT_NEAR(Zeta(kTheta)(10'000'000'000), ScrambledZipfian::kZeta, 1e-10);
}

TEST(Zipfian, HasTheSharesThatTheRecurrenceGives) {
  const std::uint64_t items = 1'000'000;
  const Zipfian zipfian(items);
  const double zeta = zeta_by_the_sum(items, kTheta);
  EXPECT_NEAR(zipfian.cumulative(1), 1 / zeta, 1e-12);
  EXPECT_NEAR(zipfian.cumulative(2), (1 + std::pow(0.5, kTheta)) / zeta, 1e-12);
  // The rest of Gray's curve follows the Zipfian distribution to about one percent of all draws.
  for (std::uint64_t rank : {3, 10, 100, 1000, 100'000}) {
    EXPECT_NEAR(zipfian.cumulative(rank), zeta_by_the_sum(rank, kTheta) / zeta, 0.012) << rank;
  }
  EXPECT_DOUBLE_EQ(zipfian.cumulative(items), 1.0);
}

// The formula as printed by Gray et al., with std::pow and none of the implementation's shortcuts.
std::uint64_t rank_by_the_formula(double uniform, std::uint64_t items, double theta) {
  const double zeta = zeta_by_the_sum(items, theta);
  const double eta = (1 - std::pow(2.0 / static_cast<double>(items), 1 - theta)) /
                     (1 - zeta_by_the_sum(2, theta) / zeta);
  if (uniform * zeta < 1) return 0;
  if (uniform * zeta < 1 + std::pow(0.5, theta)) return 1;
  return static_cast<std::uint64_t>(static_cast<double>(items) *
                                    std::pow(eta * uniform - eta + 1, 1 / (1 - theta)));
}

TEST(Zipfian, DrawsTheRanksOfThePublishedFormula) {
  constexpr std::uint64_t kSeed = 30;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (double theta : {0.3, 0.5, 0.9, 0.99}) {
    const std::uint64_t items = 1000;
    const Zipfian zipfian(items, theta);
    Random random(kSeed);
    Random same(kSeed);
    for (int i = 0; i < 300; ++i) {
      EXPECT_EQ(zipfian.next(random), rank_by_the_formula(same.uniform_unit(), items, theta));
    }
  }
}

TEST(Zipfian, DrawsTheTopRanksAsOftenAsTheyShould) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  constexpr int kDraws = 2'000'000;
  const Zipfian zipfian(1'000'000);
  Random random(kSeed);
  std::vector<int> counts(1'000'000);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipfian.next(random));

  for (std::uint64_t rank = 0; rank < 10; ++rank) {
    const double share = zipfian.cumulative(rank + 1) - zipfian.cumulative(rank);
    EXPECT_NEAR(static_cast<double>(counts[rank]) / kDraws, share, bound(share, kDraws)) << rank;
  }
  const double tenth = zipfian.cumulative(100'000);
  const double drawn = std::accumulate(counts.begin(), counts.begin() + 100'000, 0.0) / kDraws;
  EXPECT_NEAR(drawn, tenth, bound(tenth, kDraws));
}

// The shares of the most popular key and of the most popular tenth, when popularity is what so many
// draws showed, as published comparisons of the two generators count it.
struct Observed {
  double top;
  double top_tenth;
};

template <typename Generator>
Observed observe(const Generator& generator, std::uint64_t items, int draws, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> counts(items);
  for (int i = 0; i < draws; ++i) ++counts.at(generator.next(random));
  std::sort(counts.begin(), counts.end(), std::greater<>());
  const auto tenth = counts.begin() + static_cast<std::ptrdiff_t>(items / 10);
  return {static_cast<double>(counts.front()) / draws,
          std::accumulate(counts.begin(), tenth, 0.0) / draws};
}

TEST(Zipfian, GivesTheMostPopularOfAMillionKeysSixAndAHalfPercentAndTheTopTenth83) {
  const Zipfian zipfian(1'000'000);
  EXPECT_NEAR(zipfian.cumulative(1), 0.065, 0.0005);
  EXPECT_NEAR(zipfian.cumulative(100'000), 0.833, 0.0005);
  // Counted by two million draws, the top tenth includes luck: the figure of 86 %.
  constexpr std::uint64_t kSeed = 32;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Observed observed = observe(zipfian, 1'000'000, 2'000'000, kSeed);
  EXPECT_NEAR(observed.top, 0.065, bound(0.065, 2e6));
  EXPECT_NEAR(observed.top_tenth, 0.86, 0.005);
}

// The probability of each item, up to a bound: ranks beyond the first hundred items' worth are
// spread evenly, because so many of them fall on each item that the hash evens them out.
std::vector<double> scrambled_shares(const ScrambledZipfian& zipfian, std::uint64_t ranks) {
  const double rest = 1 - zipfian.ranks().cumulative(ranks);
  std::vector<double> shares(zipfian.items(), rest / static_cast<double>(zipfian.items()));
  double before = 0;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const double upto = zipfian.ranks().cumulative(rank + 1);
    shares[kv::ycsb_hash(rank) % zipfian.items()] += upto - before;
    before = upto;
  }
  return shares;
}

TEST(ScrambledZipfian, DrawsItsItemsAsOftenAsTheHashedRanksSay) {
  constexpr std::uint64_t kSeed = 33;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  constexpr std::uint64_t kItems = 20'000;
  constexpr int kDraws = 2'000'000;
  const ScrambledZipfian zipfian(kItems);
  const std::vector<double> shares = scrambled_shares(zipfian, 100 * kItems);
  std::vector<std::uint64_t> by_popularity(kItems);
  std::iota(by_popularity.begin(), by_popularity.end(), 0U);
  std::sort(by_popularity.begin(), by_popularity.end(),
            [&](std::uint64_t a, std::uint64_t b) { return shares[a] > shares[b]; });

  Random random(kSeed);
  std::vector<int> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipfian.next(random));

  for (std::size_t place = 0; place < 10; ++place) {
    const std::uint64_t item = by_popularity[place];
    EXPECT_NEAR(static_cast<double>(counts[item]) / kDraws, shares[item],
                bound(shares[item], kDraws));
  }
  double expected = 0;
  double drawn = 0;
  for (std::size_t place = 0; place < kItems / 10; ++place) {
    expected += shares[by_popularity[place]];
    drawn += static_cast<double>(counts[by_popularity[place]]) / kDraws;
  }
  // What the even spread leaves out is far below the statistical bound here.
  EXPECT_NEAR(drawn, expected, bound(expected, kDraws));
}

TEST(ScrambledZipfian, GivesTheMostPopularOfAMillionKeys3Point8PercentAndTheTopTenth60) {
  constexpr std::uint64_t kSeed = 34;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const ScrambledZipfian zipfian(1'000'000);
  EXPECT_NEAR(zipfian.ranks().cumulative(1), 0.0378, 0.0001);
  const Observed observed = observe(zipfian, 1'000'000, 2'000'000, kSeed);
  EXPECT_NEAR(observed.top, 0.038, bound(0.038, 2e6));
  EXPECT_NEAR(observed.top_tenth, 0.60, 0.01);
}

TEST(ScrambledZipfian, UsesItsOwnZetaForOtherConstants) {
  const ScrambledZipfian zipfian(1000, 0.5);
  EXPECT_NEAR(zipfian.ranks().cumulative(1), 1 / Zeta(0.5)(ScrambledZipfian::kRanks), 1e-15);
}

TEST(Zipfian, HandlesTheSmallestNumbersOfItems) {
  Random random(1);
  for (std::uint64_t items : {1, 2, 3}) {
    const Zipfian zipfian(items);
    for (int i = 0; i < 10'000; ++i) ASSERT_LT(zipfian.next(random), items);
  }
}

TEST(Zipfian, ThatGrewDrawsLikeOneMadeAtThatSize) {
  constexpr std::uint64_t kSeed = 35;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Zipfian grown(1);
  for (std::uint64_t items = 2; items <= 5000; ++items) grown.set_items(items);
  const Zipfian made(5000);
  Random random(kSeed);
  Random same(kSeed);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(grown.next(random), made.next(same));
}

// Written down once from this implementation: a change here changes every result.
TEST(Zipfian, YieldsTheSameNumbersInEveryBuild) {
  Random random(42);
  const Zipfian plain(1'000'000);
  const ScrambledZipfian scrambled(1'000'000);
  std::uint64_t digest = 0;
  for (int i = 0; i < 100'000; ++i) {
    digest = kv::fnv1a_64(digest ^ plain.next(random)) ^ scrambled.next(random);
  }
  EXPECT_EQ(digest, 12847416457316109478ULL);
}

TEST(Latest, PrefersTheNewestItem) {
  constexpr std::uint64_t kSeed = 36;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  constexpr int kDraws = 200'000;
  Latest latest(10);
  latest.set_items(1000);
  Random random(kSeed);
  std::vector<int> counts(1000);
  for (int i = 0; i < kDraws; ++i) ++counts.at(latest.next(random));
  const double share = 1 / zeta_by_the_sum(1000, kTheta);
  EXPECT_NEAR(static_cast<double>(counts[999]) / kDraws, share, bound(share, kDraws));
  EXPECT_GT(counts[999], counts[998]);
  EXPECT_GT(counts[998], counts[900]);
}

}  // namespace
}  // namespace perdura::ycsb
