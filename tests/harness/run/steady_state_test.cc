#include "bench/kv/steady_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace perdura::bench {
namespace {

constexpr double kBound = 0.02;

// Whether the rate is steady after each piece of a window of 10 ms, given its operations.
std::vector<bool> steady_after(const std::vector<std::uint64_t>& pieces) {
  SteadyState rate(kBound, Microseconds(10'000));
  std::vector<bool> steady;
  Time at{};
  std::uint64_t operations = 0;
  steady.push_back(rate.add(at, operations));
  for (const std::uint64_t piece : pieces) {
    at += rate.interval();
    operations += piece;
    steady.push_back(rate.add(at, operations));
  }
  return steady;
}

TEST(SteadyState, TakesAWholeWindow) {
  const auto steady = steady_after(std::vector<std::uint64_t>(12, 1000));
  for (std::size_t i = 0; i < steady.size(); ++i) EXPECT_EQ(steady[i], i >= 10) << i;
}

// The line rises from 10,000 - 4.5 d to 10,000 + 4.5 d in the middles of the pieces, so within the
// window by 10 d of 10,000: 2 % is d = 20.
TEST(SteadyState, IsARateThatChangesByLessThanTheBound) {
  for (int d = -40; d <= 40; ++d) {
    std::vector<std::uint64_t> pieces;
    for (int i = 0; i < 10; ++i) {
      pieces.push_back(static_cast<std::uint64_t>(10'000 + i * d - 9 * d / 2));
    }
    if (d == 20 || d == -20) continue;
    EXPECT_EQ(steady_after(pieces).back(), d > -20 && d < 20) << d;
  }
}

// Least squares: what changes in both directions alike is no slope.
TEST(SteadyState, DoesNotMindWhatGoesBothWays) {
  EXPECT_TRUE(steady_after({500, 1500, 2000, 500, 1000, 1000, 500, 2000, 1500, 500}).back());
}

TEST(SteadyState, ForgetsWhatLiesBeforeTheWindow) {
  std::vector<std::uint64_t> pieces(5, 10);
  pieces.insert(pieces.end(), 10, 1000);
  const auto steady = steady_after(pieces);
  for (std::size_t i = 0; i < steady.size(); ++i) EXPECT_EQ(steady[i], i >= 15) << i;
}

TEST(SteadyState, IsNotToStandStill) {
  EXPECT_FALSE(steady_after(std::vector<std::uint64_t>(10, 0)).back());
}

// Samples that a busy machine takes late show the same rate.
TEST(SteadyState, DoesNotMindLateSamples) {
  SteadyState rate(kBound, Microseconds(10'000));
  Time at{};
  std::uint64_t operations = 0;
  bool steady = rate.add(at, operations);
  for (const std::uint64_t milliseconds : {1, 1, 3, 1, 2, 1, 1, 1, 7, 1}) {
    at += Microseconds(milliseconds * 1000);
    operations += milliseconds * 5000;
    steady = rate.add(at, operations);
  }
  EXPECT_TRUE(steady);
}

}  // namespace
}  // namespace perdura::bench
