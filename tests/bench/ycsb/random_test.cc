#include "platform/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "services/kv/fnv.h"

namespace perdura::ycsb {
namespace {

TEST(SplitMix64, YieldsThePublishedSequence) {
  std::uint64_t state = 1234567;
  EXPECT_EQ(splitmix64(state), 6457827717110365317ULL);
  EXPECT_EQ(splitmix64(state), 3203168211198807973ULL);
  EXPECT_EQ(splitmix64(state), 9817491932198370423ULL);
}

TEST(Random, IsXoshiro256StarStar) {
  Random random(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  for (std::uint64_t expected :
       {11520ULL, 0ULL, 1509978240ULL, 1215971899390074240ULL, 1216172134540287360ULL,
        607988272756665600ULL, 16172922978634559625ULL, 8476171486693032832ULL}) {
    EXPECT_EQ(random(), expected);
  }
}

TEST(Random, RepeatsItselfForTheSameSeedAndStreamOnly) {
  Random first(7, 3);
  Random same(7, 3);
  Random other_stream(7, 4);
  Random swapped(3, 7);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t number = first();
    EXPECT_EQ(number, same());
    EXPECT_NE(number, other_stream());
    EXPECT_NE(number, swapped());
  }
}

TEST(Random, DrawsBelowABoundWithoutBias) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  constexpr std::uint64_t kBound = 7;
  constexpr int kDraws = 700'000;
  std::array<int, kBound> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.uniform_below(kBound));
  const double expected = static_cast<double>(kDraws) / kBound;
  const double deviation = std::sqrt(expected * (1 - 1.0 / kBound));
  for (int count : counts) EXPECT_NEAR(count, expected, 5 * deviation);
}

// With a bound of 3/4 of the range, taking the product's high half alone would give a third of the
// numbers twice the probability of the others.
TEST(Random, DrawsBelowAHugeBoundWithoutBias) {
  constexpr std::uint64_t kSeed = 21;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  constexpr std::uint64_t kBound = 3ULL << 62;
  constexpr int kDraws = 300'000;
  std::array<int, 3> residues{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t number = random.uniform_below(kBound);
    ASSERT_LT(number, kBound);
    ++residues.at(number % 3);
  }
  const double deviation = std::sqrt(kDraws * (1.0 / 3) * (2.0 / 3));
  for (int count : residues) EXPECT_NEAR(count, kDraws / 3.0, 5 * deviation);
}

TEST(Random, DrawsOnlyZeroBelowOne) {
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.uniform_below(1), 0U);
}

TEST(Random, DrawsUnitNumbersInTheHalfOpenInterval) {
  constexpr std::uint64_t kSeed = 22;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  constexpr int kDraws = 200'000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double number = random.uniform_unit();
    ASSERT_GE(number, 0.0);
    ASSERT_LT(number, 1.0);
    sum += number;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
}

// The generic hash, over bytes, for comparing with the vectors that its authors publish.
std::uint64_t fnv1a_64_of_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

TEST(Fnv, IsFnv1aOverEightOctetsLowFirst) {
  ASSERT_EQ(fnv1a_64_of_bytes(""), 0xcbf29ce484222325ULL);
  ASSERT_EQ(fnv1a_64_of_bytes("a"), 0xaf63dc4c8601ec8cULL);
  ASSERT_EQ(fnv1a_64_of_bytes("foobar"), 0x85944171f73967e8ULL);
  EXPECT_EQ(kv::fnv1a_64(0x7261626f6f66), fnv1a_64_of_bytes(std::string_view("foobar\0\0", 8)));
  EXPECT_EQ(kv::fnv1a_64(0x0807060504030201), fnv1a_64_of_bytes("\1\2\3\4\5\6\7\10"));
}

// The keys of the first records of every YCSB table in the world.
TEST(Fnv, NamesTheRecordsAsYcsbDoes) {
  EXPECT_EQ(kv::ycsb_hash(0), 6284781860667377211ULL);
  EXPECT_EQ(kv::ycsb_hash(1), 8517097267634966620ULL);
}

TEST(Fnv, FoldsNegativeHashesToTheirAbsoluteValue) {
  EXPECT_EQ(kv::ycsb_fold(static_cast<std::uint64_t>(-5)), 5U);
  EXPECT_EQ(kv::ycsb_fold(5), 5U);
  EXPECT_EQ(kv::ycsb_fold(1ULL << 63), 1ULL << 63);
}

// The condition from which the comment in fnv.h concludes that the hash is injective below 2^40.
TEST(Fnv, HasNoSmallRelationAmongPowersOfItsPrime) {
  constexpr std::int64_t kLargest = 510;
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  constexpr std::uint64_t kPrime2 = kPrime * kPrime;
  constexpr std::uint64_t kPrime3 = kPrime2 * kPrime;
  constexpr std::uint64_t kPrime4 = kPrime3 * kPrime;
  // e3 p + e4 is a small number, positive or negative: first ask whether the rest is small enough
  // to be cancelled by it at all.
  constexpr std::uint64_t kReach = kLargest * kPrime + kLargest;
  std::uint64_t relations = 0;
  for (std::int64_t e0 = 0; e0 <= kLargest; ++e0) {  // a relation's negative is one too
    for (std::int64_t e1 = -kLargest; e1 <= kLargest; ++e1) {
      std::uint64_t rest = static_cast<std::uint64_t>(e0) * kPrime4 +
                           static_cast<std::uint64_t>(e1) * kPrime3 -
                           static_cast<std::uint64_t>(kLargest + 1) * kPrime2;
      for (std::int64_t e2 = -kLargest; e2 <= kLargest; ++e2) {
        rest += kPrime2;
        if (rest + kReach > 2 * kReach || (e0 == 0 && e1 == 0 && e2 == 0)) continue;
        const std::uint64_t remainder = (rest + kReach) % kPrime;
        const std::uint64_t zero_at = kReach % kPrime;
        const std::uint64_t distance =
            remainder > zero_at ? remainder - zero_at : zero_at - remainder;
        if (std::min(distance, kPrime - distance) <= kLargest) ++relations;
      }
    }
  }
  EXPECT_EQ(relations, 0U);
}

}  // namespace
}  // namespace perdura::ycsb
