#include "bench/ycsb/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

namespace perdura::ycsb {
namespace {

constexpr std::uint64_t kGeneratorSeed = 60;

WorkloadSpec spec_of(std::array<double, kOperationKinds> proportions) {
  WorkloadSpec spec;
  spec.record_count = 1000;
  spec.proportions = proportions;
  spec.request_distribution = RequestDistribution::zipfian;
  return spec;
}

bool same(const WorkloadOperation& a, const WorkloadOperation& b) {
  return a.kind == b.kind && a.key_number == b.key_number && a.value_size == b.value_size &&
         a.scan_length == b.scan_length && a.version == b.version;
}

TEST(OperationGenerator, MixesOperationsInTheirProportions) {
  SCOPED_TRACE(testing::Message() << "seed " << kGeneratorSeed);
  constexpr int kDraws = 200'000;
  const WorkloadSpec spec = spec_of({3, 2, 2, 1, 2, 0});
  OperationGenerator generator(spec, kGeneratorSeed, 0, 1);
  std::array<int, kOperationKinds> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(generator.next()->kind));
  for (std::size_t kind = 0; kind < kOperationKinds; ++kind) {
    const double share = spec.share(static_cast<OperationKind>(kind));
    EXPECT_NEAR(counts[kind], share * kDraws, 5 * std::sqrt(share * (1 - share) * kDraws)) << kind;
  }
}

TEST(OperationGenerator, RepeatsItselfForTheSameSeedAndClientOnly) {
  const WorkloadSpec spec = spec_of({1, 1, 1, 1, 1, 0});
  OperationGenerator first(spec, kGeneratorSeed, 1, 4);
  OperationGenerator again(spec, kGeneratorSeed, 1, 4);
  OperationGenerator other_client(spec, kGeneratorSeed, 2, 4);
  OperationGenerator other_seed(spec, kGeneratorSeed + 1, 1, 4);
  int same_as_other_client = 0;
  int same_as_other_seed = 0;
  for (int i = 0; i < 1000; ++i) {
    const WorkloadOperation operation = *first.next();
    ASSERT_TRUE(same(operation, *again.next()));
    same_as_other_client += same(operation, *other_client.next()) ? 1 : 0;
    same_as_other_seed += same(operation, *other_seed.next()) ? 1 : 0;
  }
  EXPECT_LT(same_as_other_client, 50);
  EXPECT_LT(same_as_other_seed, 50);
}

// Written down once from this implementation: a change here changes every result.
TEST(OperationGenerator, YieldsTheSameOperationsInEveryBuild) {
  WorkloadSpec spec = spec_of({4, 2, 1, 1, 1, 1});
  spec.operation_count = 1000;
  spec.field_length_distribution = LengthDistribution::zipfian;
  OperationGenerator generator(spec, 1, 0, 2);
  std::uint64_t digest = 0;
  for (int i = 0; i < 3000; ++i) {
    const WorkloadOperation operation = *generator.next();
    for (std::uint64_t part :
         {std::uint64_t{operation.value_size}, std::uint64_t{operation.scan_length},
          operation.key_number, operation.version, static_cast<std::uint64_t>(operation.kind)}) {
      digest = kv::fnv1a_64(digest ^ part);
    }
    if (operation.kind == OperationKind::insert) generator.acknowledge_insert(operation.key_number);
  }
  EXPECT_EQ(digest, 2675192807067618951ULL);
}

TEST(OperationGenerator, CreatesEachKeyOnceOverAllClients) {
  const WorkloadSpec spec = spec_of({0, 0, 1, 0, 0, 0});
  std::set<std::uint64_t> keys;
  for (std::uint32_t client = 0; client < 3; ++client) {
    OperationGenerator generator(spec, kGeneratorSeed, client, 3);
    for (int i = 0; i < 500; ++i) keys.insert(generator.next()->key_number);
  }
  EXPECT_EQ(keys.size(), 1500U);
  EXPECT_EQ(*keys.begin(), 1000U) << "beyond the loaded keys";
  EXPECT_EQ(*keys.rbegin(), 2499U) << "without gaps";
}

TEST(OperationGenerator, StopsCreatingWhenTheKeysAreUsedUp) {
  WorkloadSpec spec = spec_of({0, 0, 1, 0, 0, 0});
  spec.record_count = 250;
  spec.key_size = 1;
  OperationGenerator generator(spec, kGeneratorSeed, 0, 1);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(generator.next().has_value());
  EXPECT_FALSE(generator.next().has_value());
}

TEST(OperationGenerator, DeletesEachLoadedKeyOnceOverAllClients) {
  WorkloadSpec spec = spec_of({0, 0, 0, 0, 0, 1});
  spec.insert_start = 100;
  std::set<std::uint64_t> keys;
  std::size_t deletes = 0;
  for (std::uint32_t client = 0; client < 7; ++client) {
    OperationGenerator generator(spec, kGeneratorSeed, client, 7);
    while (const auto operation = generator.next()) {
      EXPECT_EQ(operation->kind, OperationKind::erase);
      keys.insert(operation->key_number);
      ++deletes;
    }
  }
  EXPECT_EQ(deletes, 900U);
  EXPECT_EQ(keys.size(), 900U);
  EXPECT_EQ(*keys.begin(), 100U);
  EXPECT_EQ(*keys.rbegin(), 999U);
}

TEST(OperationGenerator, DeletesOwnAcknowledgedInsertsAfterTheLoadedKeys) {
  WorkloadSpec spec = spec_of({0, 0, 1, 0, 0, 1});
  spec.record_count = 10;
  OperationGenerator generator(spec, kGeneratorSeed, 1, 2);
  std::set<std::uint64_t> alive = {1, 3, 5, 7, 9};  // client 1's part
  int operations = 0;
  while (const auto operation = generator.next()) {
    ++operations;
    if (operation->kind == OperationKind::insert) {
      EXPECT_TRUE(alive.insert(operation->key_number).second);
      generator.acknowledge_insert(operation->key_number);
    } else {
      EXPECT_EQ(alive.erase(operation->key_number), 1U);
    }
    if (operations == 10'000) break;  // inserts and deletes may balance for long
  }
  EXPECT_GT(operations, 10);
}

TEST(OperationGenerator, KnowsAnInsertOnceAllEarlierOnesAreAcknowledged) {
  OperationGenerator generator(spec_of({0, 0, 1, 0, 0, 0}), kGeneratorSeed, 0, 2);
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < 5; ++i) keys.push_back(generator.next()->key_number);
  generator.acknowledge_insert(keys[3]);
  generator.acknowledge_insert(keys[1]);
  EXPECT_EQ(generator.acknowledged_inserts(), 0U);
  generator.acknowledge_insert(keys[0]);
  EXPECT_EQ(generator.acknowledged_inserts(), 2U);
  generator.acknowledge_insert(keys[2]);
  EXPECT_EQ(generator.acknowledged_inserts(), 4U);
  generator.acknowledge_insert(keys[4]);
  EXPECT_EQ(generator.acknowledged_inserts(), 5U);
}

TEST(OperationGenerator, TakesAcknowledgmentsInAnyOrder) {
  OperationGenerator generator(spec_of({0, 0, 1, 0, 0, 0}), kGeneratorSeed, 1, 2);
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < 64; ++i) keys.push_back(generator.next()->key_number);
  for (std::size_t i = 63; i > 0; --i) generator.acknowledge_insert(keys[i]);
  EXPECT_EQ(generator.acknowledged_inserts(), 0U);
  generator.acknowledge_insert(keys[0]);
  EXPECT_EQ(generator.acknowledged_inserts(), 64U);
}

TEST(OperationGenerator, NeverDeletesAnInsertThatNobodyAcknowledged) {
  SCOPED_TRACE(testing::Message() << "seed " << kGeneratorSeed);
  WorkloadSpec spec = spec_of({0, 0, 1, 0, 0, 1});
  spec.record_count = 10;
  OperationGenerator generator(spec, kGeneratorSeed, 0, 1);
  int inserts = 0;
  while (const auto operation = generator.next()) {
    if (operation->kind == OperationKind::insert) {
      ++inserts;
    } else {
      ASSERT_LT(operation->key_number, 10U);
    }
  }
  EXPECT_GT(inserts, 0);
}

TEST(OperationGenerator, ReadsItsNewestRecordsInWorkloadD) {
  WorkloadSpec spec = spec_of({0.95, 0, 0.05, 0, 0, 0});
  spec.request_distribution = RequestDistribution::latest;
  OperationGenerator generator(spec, kGeneratorSeed, 0, 2);
  std::set<std::uint64_t> acknowledged;
  int reads_of_new = 0;
  for (int i = 0; i < 20'000; ++i) {
    const WorkloadOperation operation = *generator.next();
    if (operation.kind == OperationKind::insert) {
      generator.acknowledge_insert(operation.key_number);
      acknowledged.insert(operation.key_number);
    } else if (operation.key_number >= 1000) {
      ASSERT_TRUE(acknowledged.contains(operation.key_number));
      ++reads_of_new;
    }
  }
  EXPECT_GT(reads_of_new, 10'000);
}

TEST(OperationGenerator, GivesEveryPutItsOwnVersion) {
  const WorkloadSpec spec = spec_of({1, 1, 1, 0, 1, 0});
  std::set<std::uint64_t> versions = {0};  // taken by loading
  std::size_t puts = 1;
  for (std::uint32_t client = 0; client < 3; ++client) {
    OperationGenerator generator(spec, kGeneratorSeed, client, 3);
    for (int i = 0; i < 1000; ++i) {
      const WorkloadOperation operation = *generator.next();
      if (operation.kind == OperationKind::read) continue;
      versions.insert(operation.version);
      ++puts;
    }
  }
  EXPECT_EQ(versions.size(), puts);
}

TEST(OperationGenerator, DrawsScanLengthsWithinTheirRange) {
  WorkloadSpec spec = spec_of({0, 0, 0, 1, 0, 0});
  spec.min_scan_length = 3;
  spec.max_scan_length = 12;
  for (LengthDistribution distribution :
       {LengthDistribution::uniform, LengthDistribution::zipfian}) {
    spec.scan_length_distribution = distribution;
    OperationGenerator generator(spec, kGeneratorSeed, 0, 1);
    std::vector<int> counts(13);
    for (int i = 0; i < 10'000; ++i) ++counts.at(generator.next()->scan_length);
    EXPECT_EQ(counts[0] + counts[1] + counts[2], 0);
    for (int length = 3; length <= 12; ++length)
      EXPECT_GT(counts[static_cast<std::size_t>(length)], 0);
    const bool prefers_short = counts[3] > 2 * counts[12];
    EXPECT_EQ(prefers_short, distribution == LengthDistribution::zipfian);
  }
}

TEST(ValueSizes, AddUpTheLengthsOfTheFields) {
  SCOPED_TRACE(testing::Message() << "seed " << kGeneratorSeed);
  WorkloadSpec spec = spec_of({1, 0, 0, 0, 0, 0});
  Random random(kGeneratorSeed);
  EXPECT_EQ(ValueSizes(spec).next(random), 1000U);

  spec.min_field_length = 50;
  for (LengthDistribution distribution :
       {LengthDistribution::uniform, LengthDistribution::zipfian}) {
    spec.field_length_distribution = distribution;
    const ValueSizes sizes(spec);
    double sum = 0;
    constexpr int kDraws = 20'000;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint32_t size = sizes.next(random);
      ASSERT_GE(size, 500U);
      ASSERT_LE(size, 1000U);
      sum += size;
    }
    // Uniform: ten fields of mean 75 and variance (51^2 - 1) / 12. Zipfian favors the short ones.
    if (distribution == LengthDistribution::uniform) {
      EXPECT_NEAR(sum / kDraws, 750, 5 * std::sqrt(10 * 216.7 / kDraws));
    } else {
      EXPECT_LT(sum / kDraws, 700);
    }
  }
}

TEST(LoadGenerator, CreatesEachLoadedKeyOnceOverAllClients) {
  WorkloadSpec spec = spec_of({1, 0, 0, 0, 0, 0});
  spec.insert_start = 10;
  spec.insert_count = 100;
  std::set<std::uint64_t> keys;
  std::size_t inserts = 0;
  for (std::uint32_t client = 0; client < 3; ++client) {
    LoadGenerator generator(spec, kGeneratorSeed, client, 3);
    while (const auto operation = generator.next()) {
      EXPECT_EQ(operation->kind, OperationKind::insert);
      EXPECT_EQ(operation->value_size, 1000U);
      EXPECT_EQ(operation->version, 0U);
      keys.insert(operation->key_number);
      ++inserts;
    }
  }
  EXPECT_EQ(inserts, 100U);
  EXPECT_EQ(keys.size(), 100U);
  EXPECT_EQ(*keys.begin(), 10U);
  EXPECT_EQ(*keys.rbegin(), 109U);
}

TEST(OperationGenerator, RefusesAnInvalidWorkloadOrClient) {
  WorkloadSpec spec = spec_of({1, 0, 0, 0, 0, 0});
  EXPECT_THROW(OperationGenerator(spec, kGeneratorSeed, 2, 2), std::invalid_argument);
  spec.record_count = 0;
  EXPECT_THROW(OperationGenerator(spec, kGeneratorSeed, 0, 1), std::invalid_argument);
  EXPECT_THROW(LoadGenerator(spec, kGeneratorSeed, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace perdura::ycsb
