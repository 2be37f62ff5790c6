#include "bench/ycsb/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "platform/base/random.h"
#include "services/kv/fnv.h"

namespace perdura::ycsb {
namespace {

constexpr std::uint64_t kSeedOfArguments = 90;
constexpr double kFewUnits = 4 * 0x1p-52;

// Positive numbers of all magnitudes between 2^-60 and 2^60.
double any_magnitude(Random& random) {
  return std::ldexp(0.5 + random.uniform_unit(), static_cast<int>(random.uniform_below(120)) - 60);
}

TEST(PortableMath, AgreesWithTheSystemsFunctions) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeedOfArguments);
  Random random(kSeedOfArguments);
  for (int i = 0; i < 200'000; ++i) {
    const double x = any_magnitude(random);
    ASSERT_NEAR(portable_log(x), std::log(x), kFewUnits * std::abs(std::log(x))) << x;
    const double y = 80 * random.uniform_unit() - 40;
    ASSERT_NEAR(portable_exp(y), std::exp(y), kFewUnits * std::exp(y)) << y;
    const double small = std::ldexp(y, -static_cast<int>(random.uniform_below(60)));
    ASSERT_NEAR(portable_expm1(small), std::expm1(small), kFewUnits * std::abs(std::expm1(small)))
        << small;
  }
}

// The exponent's product with the logarithm loses as many units as the product is large.
TEST(PortableMath, RaisesToPowers) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeedOfArguments);
  Random random(kSeedOfArguments);
  for (int i = 0; i < 100'000; ++i) {
    const double base = any_magnitude(random);
    const double exponent = random.uniform_unit();
    const double expected = std::pow(base, exponent);
    const double units = 1 + std::abs(exponent * std::log(base));
    ASSERT_NEAR(portable_pow(base, exponent), expected, kFewUnits * units * expected) << base;
  }
}

TEST(PortableMath, IsExactWhereItMatters) {
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_expm1(0.0), 0.0);
  for (int power = -50; power <= 50; ++power) {
    EXPECT_DOUBLE_EQ(portable_log(std::ldexp(1.0, power)), power * std::log(2.0));
  }
}

// Written down once: all that this header is for.
TEST(PortableMath, GivesTheSameDigitsInEveryBuild) {
  Random random(1);
  std::uint64_t digest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double result = portable_pow(any_magnitude(random), random.uniform_unit());
    digest = kv::fnv1a_64(digest ^ std::bit_cast<std::uint64_t>(result));
  }
  EXPECT_EQ(digest, 5964153178668175599ULL);
}

}  // namespace
}  // namespace perdura::ycsb
