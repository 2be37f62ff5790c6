// What is particular to a store with level hashing: a get is one to four READs, one after the
// other; nothing is missed while items are moved.
#include <atomic>
#include <iostream>
#include <map>
#include <random>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"
#include "tests/systems/bucket_hash/hash_store.h"
#include "tests/systems/level/support.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

class LevelStore : public HashStore {
 protected:
  // How many gets of these keys took so many READs; each key below `known` has version 1.
  using Reads = std::map<std::uint64_t, std::uint64_t>;
  static Task<Reads> count_reads(kv::KvSession& session, const FaultyThread& fabric,
                                 std::uint64_t first, std::uint64_t last, std::uint64_t version) {
    Reads reads;
    for (std::uint64_t i = first; i < last; ++i) {
      ++reads[co_await reads_of_get(session, fabric, i, version)];
    }
    co_return reads;
  }
  static std::string text(const Reads& reads) {
    std::string text;
    for (const auto& [count, gets] : reads) text += fmt::format("{} READs: {}  ", count, gets);
    return text;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LevelStore, testing::ValuesIn(hash_subjects("level")), subject_name);

// "Multiple RDMA round-trips": as many as candidates are looked at until the key is found.
TEST_P(LevelStore, AGetIsOneToFourReads) {
  config_.parameters = {{"top_buckets", 64}, {"resizes", 0}};
  serve();
  connect_counted([](kv::KvSession& session, const FaultyThread& fabric) -> Task<> {
    std::uint64_t items = 0;
    for (const double load : {0.3, 0.6, 0.8}) {
      const auto goal = static_cast<std::uint64_t>(load * 96 * level::kBucketSlots);
      for (; items < goal; ++items) EXPECT_TRUE((co_await put(session, items, 1)).has_value());
      const Reads hits = co_await count_reads(session, fabric, 0, items, 1);
      const Reads misses = co_await count_reads(session, fabric, 10'000, 10'100, 0);
      std::cout << fmt::format("load {}: hits: {}misses: {}\n", load, text(hits), text(misses));
      EXPECT_GE(hits.begin()->first, 1U);
      EXPECT_LE(hits.rbegin()->first, 4U);
      EXPECT_GT(hits.begin()->second, items / 5);
      EXPECT_EQ(misses, (Reads{{4, 100}}));
      // The bottom level is there for what the top has no room for.
      EXPECT_EQ(hits.contains(4), load > 0.7);
    }
  });
  run();
}

// One client keeps a small table full, so that most of its inserts must move an item and most of
// its updates overwrite a slot, while others read what is there.
TEST_P(LevelStore, MovementsWhileClientsReadAreLinearizable) {
  constexpr std::uint64_t kTopBuckets = 16;
  constexpr std::uint64_t kKeys = 100;
  constexpr std::uint64_t kSteps = 3000;
  struct Step {
    bool erase = false;
    std::uint64_t key = 0;
  };
  // What the index will do, found out on one without a network: only puts that succeed.
  std::vector<Step> steps;
  const level::Geometry geometry{kTopBuckets / 2, 0};
  perdura::test::PlainMemory memory(geometry.size());
  level::Index index(memory.region(), 0, geometry);
  std::mt19937_64 random(1);
  while (steps.size() < kSteps) {
    const Step step{random() % 8 == 0, random() % kKeys};
    const Buffer key = key_of(step.key);
    const Buffer value = value_of(step.key, 1, kHashValue);
    const auto done =
        step.erase ? index.erase(level::Slot::of(key)) : index.put(level::Slot::of(key, value));
    if (done) steps.push_back(step);
  }
  std::cout << index.movements() << " movements, " << index.overwrites() << " overwritten slots\n";
  EXPECT_GT(index.movements(), 20U);
  EXPECT_GT(index.overwrites(), 500U);

  config_.parameters = {{"top_buckets", kTopBuckets}, {"resizes", 0}};
  config_.records = 10;
  std::atomic<bool> writing{true};
  Recording recording(1 << 16);
  serve();
  connect(recording.of([&](kv::KvSession& session, Thread&) -> Task<> {
    std::uint64_t version = 0;
    for (const Step& step : steps) {
      if (step.erase) {
        EXPECT_TRUE((co_await erase(session, step.key)).has_value());
      } else {
        EXPECT_TRUE((co_await put(session, step.key, ++version)).has_value());
      }
    }
    writing = false;
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](kv::KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 choice(reader);
      for (int i = 0; writing && i < 20'000; ++i) co_await get(session, choice() % kKeys);
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.keys, kKeys);
}

TEST(LevelParameters, TheImpossibleIsRefusedInOneLine) {
  expect_parameters_refused(
      find_kv_system("level"),
      {{"top_buckets", 6}, {"top_buckets", 0}, {"resizes", level::kMaxResizes + 1}});
}

}  // namespace
}  // namespace perdura::systems::test
