#include "bench/ycsb/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace perdura::ycsb {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000'000;

std::vector<std::uint64_t> draw(Arrivals arrivals, std::size_t count) {
  std::vector<std::uint64_t> times(count);
  for (std::uint64_t& time : times) time = arrivals.next();
  return times;
}

TEST(Arrivals, FixedOnesOfAllClientsAreAtEqualIntervals) {
  constexpr std::uint32_t kClients = 3;
  std::vector<Arrivals> clients;
  for (std::uint32_t client = 0; client < kClients; ++client) {
    clients.emplace_back(ArrivalProcess::fixed, 7, 1, client, kClients, 0);
  }
  for (std::uint64_t i = 0; i < 3 * 7 * 100; ++i) {
    EXPECT_EQ(clients[i % kClients].next(), i * kSecond / 7);
  }
}

// Rounding must not add up: after 10^6 seconds' worth of arrivals they are still in time.
TEST(Arrivals, FixedOnesDoNotDrift) {
  Arrivals arrivals(ArrivalProcess::fixed, 3, 1, 0, 1, 0);
  std::uint64_t last = 0;
  for (int i = 0; i <= 3'000'000; ++i) last = arrivals.next();
  EXPECT_EQ(last, 1'000'000 * kSecond);
}

// The distance of the empirical distribution of gaps from the exponential one (Kolmogorov and
// Smirnov). With n samples it exceeds 1.95 / sqrt(n) once in a thousand; the seed is fixed, so the
// test passes always or never. A gap that were drawn of half the rate, or uniformly, is off by 0.25
// and 0.16, where 0.006 is allowed.
TEST(Arrivals, PoissonGapsAreExponential) {
  constexpr std::size_t kCount = 100'000;
  constexpr double kMean = 4.0 * 1e12 / 1000;
  const auto times = draw(Arrivals(ArrivalProcess::poisson, 1000, 1, 2, 4, 0), kCount);
  std::vector<double> gaps;
  std::uint64_t last = 0;
  for (const std::uint64_t time : times) {
    gaps.push_back(static_cast<double>(time - last));
    last = time;
  }
  std::sort(gaps.begin(), gaps.end());
  double distance = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double expected = 1.0 - std::exp(-gaps[i] / kMean);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / kCount),
                         std::abs(expected - static_cast<double>(i + 1) / kCount)});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(kCount)));
}

// Successive gaps of a Poisson process are independent: their correlation is normally distributed
// with the standard deviation 1 / sqrt(n); four of those are allowed.
TEST(Arrivals, PoissonGapsDoNotDependOnEachOther) {
  constexpr std::size_t kCount = 100'000;
  const auto times = draw(Arrivals(ArrivalProcess::poisson, 1000, 1, 0, 1, 0), kCount + 1);
  double products = 0;
  double squares = 0;
  for (std::size_t i = 2; i < times.size(); ++i) {
    const double gap = static_cast<double>(times[i] - times[i - 1]) / 1e9 - 1;
    const double before = static_cast<double>(times[i - 1] - times[i - 2]) / 1e9 - 1;
    products += gap * before;
    squares += gap * gap;
  }
  EXPECT_LT(std::abs(products / squares), 4 / std::sqrt(static_cast<double>(kCount)));
}

// The rate of all clients is the one asked for: the time of the n-th of all has the standard
// deviation sqrt(n) gaps; four of those are allowed.
TEST(Arrivals, PoissonRateIsTheOneAskedFor) {
  constexpr std::uint32_t kClients = 5;
  constexpr std::size_t kCount = 50'000;
  double sum = 0;
  for (std::uint32_t client = 0; client < kClients; ++client) {
    sum += static_cast<double>(
        draw(Arrivals(ArrivalProcess::poisson, 1'000'000, 3, client, kClients, 1), kCount).back());
  }
  const double rate = kClients * kCount / (sum / kClients / 1e12);
  EXPECT_NEAR(rate, 1e6, 1e6 * 4 / std::sqrt(kCount * double{kClients}));
}

TEST(Arrivals, DependOnSeedClientAndStretchOnly) {
  const auto poisson = [](std::uint64_t seed, std::uint32_t client, std::uint32_t stretch) {
    return draw(Arrivals(ArrivalProcess::poisson, 1000, seed, client, 4, stretch), 100);
  };
  EXPECT_EQ(poisson(1, 0, 0), poisson(1, 0, 0));
  EXPECT_NE(poisson(1, 0, 0), poisson(2, 0, 0));
  EXPECT_NE(poisson(1, 0, 0), poisson(1, 1, 0));
  EXPECT_NE(poisson(1, 0, 0), poisson(1, 0, 1));
}

TEST(Arrivals, AreTheSameOnEveryMachine) {
  EXPECT_EQ(draw(Arrivals(ArrivalProcess::poisson, 1'000'000, 1, 0, 1, 0), 4),
            (std::vector<std::uint64_t>{1900792, 2320274, 3642865, 5177588}));
}

TEST(Arrivals, ComeInTheirOrder) {
  const auto times = draw(Arrivals(ArrivalProcess::poisson, 1'000'000'000, 1, 0, 1, 0), 100'000);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

}  // namespace
}  // namespace perdura::ycsb
