#include "harness/measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace perdura::measure {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Latencies from nanoseconds to an hour, each magnitude equally likely.
std::vector<std::uint64_t> random_latencies(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values) {
    value = std::min((random() >> 22) >> (random() % 42), Histogram::kMaxNanoseconds);
  }
  return values;
}

Histogram of(const std::vector<std::uint64_t>& values) {
  Histogram histogram;
  for (std::uint64_t value : values) histogram.record(value);
  return histogram;
}

Histogram::Bucket bucket_of(std::uint64_t value) {
  static Histogram histogram;
  histogram.reset();
  histogram.record(value);
  Histogram::Bucket found{};
  histogram.for_each_bucket([&](const Histogram::Bucket& bucket) { found = bucket; });
  return found;
}

void expect_three_digits(Histogram& histogram, std::uint64_t value) {
  histogram.reset();
  histogram.record(value);
  int buckets = 0;
  histogram.for_each_bucket([&](const Histogram::Bucket& bucket) {
    ++buckets;
    ASSERT_LE(bucket.low, value);
    ASSERT_GE(bucket.high, value);
    ASSERT_LE(static_cast<double>(bucket.high - bucket.low), 0.001 * static_cast<double>(value))
        << value;
    ASSERT_EQ(bucket.count, 1U);
  });
  ASSERT_EQ(buckets, 1);
}

TEST(Histogram, KeepsThreeDigitsOfEverySmallValue) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100'000; ++value) {
    ASSERT_NO_FATAL_FAILURE(expect_three_digits(histogram, value));
  }
}

TEST(Histogram, KeepsThreeDigitsAroundEveryPowerOfTwoUpToAnHour) {
  Histogram histogram;
  for (int power = 1; power < 42; ++power) {
    for (std::int64_t offset : {-1, 0, 1}) {
      const std::uint64_t value = (std::uint64_t{1} << power) + static_cast<std::uint64_t>(offset);
      if (value > Histogram::kMaxNanoseconds) continue;
      ASSERT_NO_FATAL_FAILURE(expect_three_digits(histogram, value));
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_three_digits(histogram, Histogram::kMaxNanoseconds));
}

TEST(Histogram, HasBucketsWithoutGapsAndOverlaps) {
  std::uint64_t next = 0;
  int buckets = 0;
  while (next <= Histogram::kMaxNanoseconds) {
    const Histogram::Bucket first = bucket_of(next);
    ASSERT_EQ(first.low, next);
    ASSERT_EQ(bucket_of(std::min(first.high, Histogram::kMaxNanoseconds)).low, first.low);
    next = first.high + 1;
    ++buckets;
    if (buckets > 4000 && next < kSecond) next = bucket_of(kSecond).low;  // enough of the low ones
  }
  EXPECT_GT(buckets, 4000);
}

TEST(Histogram, KeepsSmallValuesExactly) {
  for (std::uint64_t value : {0, 1, 2, 1023, 1024, 2047}) {
    EXPECT_EQ(bucket_of(value).low, value);
    EXPECT_EQ(bucket_of(value).high, value);
  }
  EXPECT_EQ(bucket_of(2048).high, 2049U);
}

TEST(Histogram, KnowsCountSumMinimumAndMaximumExactly) {
  constexpr std::uint64_t kSeed = 70;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const std::vector<std::uint64_t> values = random_latencies(10'000, kSeed);
  const Histogram histogram = of(values);
  double sum = 0;
  for (std::uint64_t value : values) sum += static_cast<double>(value);
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_DOUBLE_EQ(histogram.sum(), sum);  // below 2^53, so that doubles add up exactly
  EXPECT_DOUBLE_EQ(histogram.mean(), sum / 10'000);
}

TEST(Histogram, AddsUpBeyondSixtyFourBits) {
  Histogram histogram;
  histogram.record(Histogram::kMaxNanoseconds, 100'000'000);
  EXPECT_DOUBLE_EQ(histogram.sum(), 3.6e20);
}

TEST(Histogram, CountsValuesAboveAnHourAndKeepsTheirMaximum) {
  Histogram histogram;
  histogram.record(Histogram::kMaxNanoseconds);
  EXPECT_EQ(histogram.saturated(), 0U);
  histogram.record(2 * Histogram::kMaxNanoseconds);
  histogram.record(~std::uint64_t{0}, 2);
  EXPECT_EQ(histogram.saturated(), 3U);
  EXPECT_EQ(histogram.count(), 4U);
  EXPECT_EQ(histogram.max(), ~std::uint64_t{0});
  EXPECT_EQ(histogram.percentile(100), ~std::uint64_t{0});
}

TEST(Histogram, IsEmptyAtFirstAndAfterReset) {
  Histogram histogram;
  const Histogram fresh;
  histogram.record(5);
  histogram.record(kSecond, 0);
  EXPECT_EQ(histogram.max(), 5U) << "a value recorded zero times was not recorded";
  histogram.record(2 * Histogram::kMaxNanoseconds);
  histogram.reset();
  EXPECT_TRUE(histogram == fresh);
  EXPECT_EQ(fresh.count(), 0U);
  EXPECT_EQ(fresh.min(), 0U);
  EXPECT_EQ(fresh.max(), 0U);
  EXPECT_EQ(fresh.mean(), 0.0);
  EXPECT_EQ(fresh.percentile(50), 0U);
  EXPECT_FALSE(fresh.percentile_if_enough(50).has_value());
  fresh.for_each_bucket([](const Histogram::Bucket&) { FAIL(); });
}

// The definition, on the sorted samples: the smallest sample such that at least the given share is
// not above it. Per hundred thousand, so that the rank is a matter of whole numbers.
std::uint64_t percentile_of(const std::vector<std::uint64_t>& sorted, std::uint64_t per_100000) {
  const std::uint64_t rank = (per_100000 * sorted.size() + 99'999) / 100'000;
  return sorted[std::max<std::uint64_t>(rank, 1) - 1];
}

TEST(Histogram, FindsThePercentilesOfTheSortedSamples) {
  constexpr std::uint64_t kSeed = 71;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (std::size_t count : {1U, 2U, 3U, 10U, 999U, 1000U, 10'000U, 100'000U}) {
    std::vector<std::uint64_t> values = random_latencies(count, kSeed + count);
    const Histogram histogram = of(values);
    std::sort(values.begin(), values.end());
    for (std::uint64_t per_100000 : {0, 1, 10, 1000, 25'000, 33'333, 50'000, 70'000, 90'000, 95'000,
                                     99'000, 99'900, 99'990, 99'999, 100'000}) {
      const std::uint64_t exact = percentile_of(values, per_100000);
      const std::uint64_t found = histogram.percentile(static_cast<double>(per_100000) / 1000.0);
      EXPECT_GE(found, exact) << count << " samples, " << per_100000;
      EXPECT_LE(found, bucket_of(exact).high);
      EXPECT_LE(found, histogram.max());
    }
  }
}

TEST(Histogram, TakesAWholeRankAsItIsDespiteBinaryFractions) {
  for (std::uint64_t count : {1000U, 10'000U, 1'000'000U}) {
    Histogram histogram;
    histogram.record(10, count / 1000 * 999);
    histogram.record(1000, count / 1000);
    EXPECT_EQ(histogram.percentile(99.9), 10U) << count;
    EXPECT_EQ(histogram.percentile(99.9 + 100.0 / static_cast<double>(count)), 1000U) << count;
  }
}

TEST(Histogram, NeverExceedsTheMaximum) {
  Histogram histogram;
  histogram.record(1'000'001);
  EXPECT_EQ(histogram.percentile(50), 1'000'001U);
  EXPECT_EQ(histogram.percentile(1000), 1'000'001U) << "out of range means 100";
}

TEST(Histogram, RefusesAPercentileWithFewerThanTenSamplesBeyond) {
  Histogram histogram;
  histogram.record(100, 990);
  histogram.record(200, 9);
  EXPECT_FALSE(histogram.percentile_if_enough(99).has_value());
  histogram.record(200);
  EXPECT_EQ(histogram.percentile_if_enough(99), 100U);
  EXPECT_FALSE(histogram.percentile_if_enough(99.9).has_value());
  EXPECT_FALSE(histogram.percentile_if_enough(100).has_value());
  EXPECT_EQ(histogram.percentile_if_enough(50), 100U);
}

TEST(Histogram, MergedEqualsOneThatRecordedAll) {
  constexpr std::uint64_t kSeed = 72;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::vector<std::uint64_t> values = random_latencies(10'000, kSeed);
  // Among them some that are too long to be told apart.
  for (std::uint64_t i = 0; i < 9; ++i) values.push_back(Histogram::kMaxNanoseconds + i);
  Histogram parts[3];
  for (std::size_t i = 0; i < values.size(); ++i) parts[i * i % 3].record(values[i]);
  Histogram merged;
  for (const Histogram& part : parts) merged.merge(part);
  merged.merge(Histogram());
  EXPECT_TRUE(merged == of(values));
  EXPECT_EQ(merged.saturated(), 8U);
}

TEST(Histogram, SurvivesSerialization) {
  constexpr std::uint64_t kSeed = 73;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Histogram histogram = of(random_latencies(1000, kSeed));
  histogram.record(~std::uint64_t{0}, 1000);
  const auto back = Histogram::deserialize(histogram.serialize());
  ASSERT_TRUE(back.has_value()) << back.error();
  EXPECT_TRUE(*back == histogram);

  const auto empty = Histogram::deserialize(Histogram().serialize());
  ASSERT_TRUE(empty.has_value()) << empty.error();
  EXPECT_TRUE(*empty == Histogram());
}

TEST(Histogram, RefusesWordsThatAreNoHistogram) {
  Histogram histogram;
  histogram.record(5);
  histogram.record(kSecond, 3);
  const std::vector<std::uint64_t> good = histogram.serialize();
  ASSERT_EQ(good.size(), 7U + 4U);
  EXPECT_FALSE(Histogram::deserialize({}).has_value());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Histogram::deserialize(std::span(good).first(size)).has_value()) << size;
  }
  for (std::size_t word : {0, 1, 4, 5, 7, 8, 9, 10}) {
    std::vector<std::uint64_t> bad = good;
    bad[word] += kSecond * kSecond;
    EXPECT_FALSE(Histogram::deserialize(bad).has_value()) << "word " << word;
  }
}

TEST(Histogram, VisitsItsBucketsInAscendingOrder) {
  constexpr std::uint64_t kSeed = 74;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Histogram histogram = of(random_latencies(5000, kSeed));
  std::uint64_t total = 0;
  std::uint64_t previous = 0;
  histogram.for_each_bucket([&](const Histogram::Bucket& bucket) {
    EXPECT_TRUE(total == 0 || bucket.low > previous);
    EXPECT_GT(bucket.count, 0U);
    previous = bucket.high;
    total += bucket.count;
  });
  EXPECT_EQ(total, histogram.count());
}

}  // namespace
}  // namespace perdura::measure
