#include "bench/ycsb/key_chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace perdura::ycsb {
namespace {

constexpr std::uint64_t kChooserSeed = 50;
constexpr int kChoices = 100'000;

WorkloadSpec spec_with(RequestDistribution distribution) {
  WorkloadSpec spec;
  spec.record_count = 1100;
  spec.insert_start = 100;
  spec.request_distribution = distribution;
  return spec;
}

KeyNumbering numbering_of(const WorkloadSpec& spec, std::uint32_t client = 1,
                          std::uint32_t clients = 3) {
  return {spec.first_key(), spec.loaded_keys(), spec.first_new_key(), client, clients};
}

std::map<std::uint64_t, int> draw_many(const WorkloadSpec& spec, std::uint64_t own_new_keys = 0) {
  KeyChooser chooser(spec, numbering_of(spec));
  Random random(kChooserSeed);
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < kChoices; ++i) ++counts[chooser.next(random, own_new_keys)];
  return counts;
}

double bound(double probability) {
  return 5 * std::sqrt(probability * (1 - probability) * kChoices);
}

class EveryDistribution : public testing::TestWithParam<RequestDistribution> {};

TEST_P(EveryDistribution, DrawsOnlyKeysThatTheClientKnows) {
  SCOPED_TRACE(testing::Message() << "seed " << kChooserSeed);
  WorkloadSpec spec = spec_with(GetParam());
  spec.operation_count = 10'000;
  spec.proportions = {0.9, 0, 0.1, 0, 0, 0};
  constexpr std::uint64_t kOwnNewKeys = 20;
  for (const auto& [key, count] : draw_many(spec, kOwnNewKeys)) {
    if (key < 1100) {
      EXPECT_GE(key, 100U);
    } else {
      EXPECT_EQ((key - 1100) % 3, 1U) << "another client's key";
      EXPECT_LT((key - 1100) / 3, kOwnNewKeys) << "a key that nobody acknowledged";
    }
  }
}

TEST_P(EveryDistribution, WorksOnASingleKey) {
  WorkloadSpec spec = spec_with(GetParam());
  spec.insert_start = 1099;
  EXPECT_EQ(draw_many(spec).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(, EveryDistribution,
                         testing::Values(RequestDistribution::uniform, RequestDistribution::zipfian,
                                         RequestDistribution::plain_zipfian,
                                         RequestDistribution::latest,
                                         RequestDistribution::sequential,
                                         RequestDistribution::hotspot,
                                         RequestDistribution::exponential),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST(KeyChooser, DrawsUniformly) {
  const auto counts = draw_many(spec_with(RequestDistribution::uniform));
  EXPECT_EQ(counts.size(), 1000U);
  for (const auto& [key, count] : counts)
    EXPECT_NEAR(count, kChoices / 1000.0, bound(0.001)) << key;
}

TEST(KeyChooser, MakesTheLowestKeyOfPlainZipfianTheMostPopular) {
  auto counts = draw_many(spec_with(RequestDistribution::plain_zipfian));
  const double share = 1 / Zeta(0.99)(1000);
  EXPECT_NEAR(counts[100], share * kChoices, bound(share));
}

TEST(KeyChooser, MakesTheClientsNewestKeyTheMostPopularOfLatest) {
  auto counts = draw_many(spec_with(RequestDistribution::latest), 10);
  const double share = 1 / Zeta(0.99)(1010);
  EXPECT_NEAR(counts[1100 + 1 + 9 * 3], share * kChoices, bound(share));
  auto before_any_insert = draw_many(spec_with(RequestDistribution::latest), 0);
  EXPECT_GT(before_any_insert[1099], kChoices / 10) << "the last loaded key";
}

// All clients agree on the popular keys, and creation does not change them.
TEST(KeyChooser, KeepsThePopularKeysOfZipfianForAllClientsAndOverTime) {
  WorkloadSpec spec = spec_with(RequestDistribution::zipfian);
  spec.operation_count = 2000;
  spec.proportions = {0.9, 0, 0.1, 0, 0, 0};
  const auto most_popular = [&](std::uint32_t client, std::uint64_t own_new_keys) {
    KeyChooser chooser(spec, numbering_of(spec, client));
    Random random(kChooserSeed, client);
    std::map<std::uint64_t, int> counts;
    for (int i = 0; i < kChoices; ++i) ++counts[chooser.next(random, own_new_keys)];
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  };
  EXPECT_EQ(most_popular(0, 0), most_popular(2, 0));
  EXPECT_EQ(most_popular(0, 0), most_popular(0, 60));
}

TEST(KeyChooser, GivesTheHotSetItsShareOfOperations) {
  double hot = 0;
  for (const auto& [key, count] : draw_many(spec_with(RequestDistribution::hotspot))) {
    if (key < 100 + 200) hot += count;
  }
  EXPECT_NEAR(hot, 0.8 * kChoices, bound(0.8));
}

TEST(KeyChooser, TakesAHotSetOfNothingOrEverything) {
  WorkloadSpec spec = spec_with(RequestDistribution::hotspot);
  spec.hotspot_data_fraction = 0;
  EXPECT_EQ(draw_many(spec).size(), 1000U);
  spec.hotspot_data_fraction = 1;
  EXPECT_EQ(draw_many(spec).size(), 1000U);
}

// exponential.percentile of the requests fall into the newest exponential.frac of the records, of
// those requests that fall on any record at all.
TEST(KeyChooser, AgesExponentially) {
  WorkloadSpec spec = spec_with(RequestDistribution::exponential);
  spec.insert_start = 0;
  spec.record_count = 1000;
  spec.exponential_percentile = 90;
  spec.exponential_fraction = 0.1;
  double newest = 0;
  for (const auto& [key, count] : draw_many(spec)) {
    if (key >= 900) newest += count;
  }
  EXPECT_NEAR(newest, 0.9 * kChoices, bound(0.9));
}

TEST(KeyChooser, WalksSequentiallyAllClientsTogetherCoveringTheKeys) {
  const WorkloadSpec spec = spec_with(RequestDistribution::sequential);
  std::map<std::uint64_t, int> counts;
  Random random(kChooserSeed);
  for (std::uint32_t client = 0; client < 3; ++client) {
    KeyChooser chooser(spec, numbering_of(spec, client));
    const std::uint64_t own = operations_of_client(1000, client, 3);
    std::uint64_t previous = 0;
    for (std::uint64_t i = 0; i < own; ++i) {
      const std::uint64_t key = chooser.next(random, 0);
      EXPECT_GT(key, previous);
      previous = key;
      ++counts[key];
    }
    EXPECT_EQ(chooser.next(random, 0), 100 + client) << "starts over";
  }
  EXPECT_EQ(counts.size(), 1000U);
}

}  // namespace
}  // namespace perdura::ycsb
