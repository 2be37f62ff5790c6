// What stores with hash indexes have in common: a get is a known number of READs, also after the
// table has been resized under the client; nothing is lost or missed while it is, or while it is
// nearly full; a full one keeps everything.
#include <atomic>
#include <random>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"
#include "tests/systems/bucket_hash/hash_store.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

// How the systems differ in what these tests look at.
struct Particulars {
  std::uint64_t most_reads = 1;    // of a get, if no bucket has got more room
  bool updates_need_room = false;  // that a full bucket does not have
  // About as many slots as any of the others, which never become more.
  decltype(kv::KvConfig::parameters) fixed_table{};
};

Particulars particulars_of(const std::string& system) {
  if (system == "continuity") {
    return {1, true, {{"buckets", 12}, {"sbuckets", 1}, {"added_percent", 0}, {"resizes", 0}}};
  }
  if (system == "level") return {4, false, {{"top_buckets", 12}, {"resizes", 0}}};
  return {1, false, {{"buckets", 16}, {"overflow_percent", 0}, {"resizes", 0}}};
}

class HashStores : public HashStore {
 protected:
  Particulars particulars() const { return particulars_of(GetParam().system); }
  void start_small(std::uint64_t resizes) {
    config_.parameters = resizing_config(system(), 1, resizes).parameters;
  }
  // No bucket has more room than any other one.
  void start_plain(std::uint64_t resizes) {
    start_small(resizes);
    for (const char* name : {"added_percent", "overflow_percent"}) {
      if (particulars().fixed_table.contains(name)) config_.parameters[name] = 0;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, HashStores, testing::ValuesIn(hash_subjects()), subject_name);

TEST_P(HashStores, AGetIsAtMostAsManyReads) {
  serve();
  connect_counted([this](kv::KvSession& session, const FaultyThread& fabric) -> Task<> {
    const std::uint64_t most = particulars().most_reads;
    for (std::uint64_t i = 0; i < 500; ++i) {
      EXPECT_TRUE((co_await put(session, i, i + 1)).has_value());
    }
    for (std::uint64_t i = 0; i < 500; ++i) {
      const std::uint64_t reads = co_await reads_of_get(session, fabric, i, i + 1);
      EXPECT_GE(reads, 1U);
      EXPECT_LE(reads, most);
    }
    for (std::uint64_t i = 500; i < 1000; ++i) {
      EXPECT_EQ(co_await reads_of_get(session, fabric, i, 0), most);
    }
  });
  run();
}

TEST_P(HashStores, AGetIsAtMostAsManyReadsAgainAfterResizes) {
  start_plain(8);
  serve();
  connect_counted([this](kv::KvSession& session, const FaultyThread& fabric) -> Task<> {
    const std::uint64_t most = particulars().most_reads;
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE((co_await put(session, i, i + 1)).has_value());
    }
    EXPECT_GT(co_await reads_of_get(session, fabric, 0, 1), std::max<std::uint64_t>(most, 2))
        << "through the old tables";
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t reads = co_await reads_of_get(session, fabric, i, i + 1);
      EXPECT_GE(reads, 1U);
      EXPECT_LE(reads, most);
    }
  });
  run();
}

// Readers that knew the first table, and others that come in between.
TEST_P(HashStores, ResizesWhileClientsReadAndWriteAreLinearizable) {
  constexpr std::uint64_t kKeys = 240;
  start_small(10);
  // Tables after the first may be of another kind.
  if (system().name == "continuity") config_.parameters["resized_sbuckets"] = 3;
  config_.records = kKeys;
  std::atomic<std::uint64_t> written{0};
  Recording recording;
  SharedStore store(platform(), system(), config_);
  bool grown = false;
  connect(recording.of([&](kv::KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      EXPECT_TRUE((co_await put(session, number, 1)).has_value());
      EXPECT_TRUE((co_await put(session, number / 2, number + 2)).has_value());
      if (number % 16 == 5) {
        EXPECT_TRUE((co_await erase(session, number)).has_value());
      }
      written = number + 1;
    }
    grown = store.capacity() > 4 * store.first_capacity();
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](kv::KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 random(reader);
      while (written < kKeys) co_await get(session, random() % (written + 1));
      for (std::uint64_t number = 0; number < kKeys; ++number) co_await get(session, number);
    }));
  }
  run();
  EXPECT_TRUE(grown);
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.keys, kKeys);
}

// A table that is always nearly full, so that items move all the time, if they do; some keys are
// written once and must be found at every moment from then on.
TEST_P(HashStores, WritesToATableThatIsNearlyFullAreLinearizable) {
  constexpr std::uint64_t kKeys = 90;
  constexpr std::uint64_t kStable = 20;
  constexpr int kWrites = 500;
  config_.parameters = particulars().fixed_table;
  std::atomic<bool> loaded{false};
  std::atomic<bool> writing{true};
  int refused = 0;
  Recording recording(1 << 16);
  serve();
  connect(recording.of([&](kv::KvSession& session, Thread&) -> Task<> {
    std::mt19937_64 random(7);
    for (std::uint64_t number = 0; number < kStable; ++number) {
      EXPECT_TRUE((co_await put(session, number, 1)).has_value());
    }
    loaded = true;
    for (int i = 0; i < kWrites; ++i) {
      const std::uint64_t number = kStable + random() % (kKeys - kStable);
      if (random() % 4 == 0) {
        co_await erase(session, number);
      } else if (!co_await put(session, number, static_cast<std::uint64_t>(i) + 2)) {
        ++refused;
      }
    }
    writing = false;
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](kv::KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 random(reader);
      while (!loaded) co_await sleep_for(Microseconds(1));
      for (std::uint64_t i = 0; writing && i < 20'000; ++i) {
        if (i % 4 == 0) {
          co_await get(session, random() % kKeys);
        } else {
          EXPECT_EQ(co_await get(session, random() % kStable), 1U);
        }
      }
    }));
  }
  run();
  EXPECT_GT(refused, 10);
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
}

TEST_P(HashStores, AFullTableThatMayNotGrowKeepsEverything) {
  start_small(1);
  config_.records = 10;
  serve();
  connect([this](kv::KvSession& session, Thread&) -> Task<> {
    std::uint64_t items = 0;
    for (;; ++items) {
      const auto done = co_await put(session, items, 1);
      if (done) continue;
      EXPECT_EQ(done.error(), kv::Error::out_of_space);
      break;
    }
    EXPECT_GT(items, 16U);
    for (std::uint64_t i = 0; i < items; ++i) EXPECT_EQ(co_await get(session, i), 1U);
    EXPECT_EQ(co_await get(session, items), 0U);
    // Updates and, after a deletion, inserts go on.
    std::uint64_t updated = 0;
    for (std::uint64_t i = 0; i < items; ++i) {
      const auto done = co_await put(session, i, 2);
      if (!done) {
        EXPECT_EQ(done.error(), kv::Error::out_of_space);
      }
      EXPECT_EQ(co_await get(session, i), done ? 2U : 1U);
      updated += done ? 1 : 0;
    }
    EXPECT_GE(updated, particulars().updates_need_room ? items / 4 : items);
    EXPECT_TRUE((co_await erase(session, 0)).has_value());
    EXPECT_EQ(co_await get(session, 0), 0U);
    EXPECT_TRUE((co_await put(session, 0, 3)).has_value());
    EXPECT_EQ(co_await get(session, 0), 3U);
    for (std::uint64_t i = 1; i < items; ++i) EXPECT_GT(co_await get(session, i), 0U);
  });
  run();
}

class HashParameters : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, HashParameters, testing::ValuesIn(systems_with_workers()),
                         [](const auto& subject) { return test_name(subject.param, 1); });

TEST_P(HashParameters, TheImpossibleIsRefusedInOneLine) {
  const kv::KvSystem& system = find_kv_system(GetParam());
  const kv::KvConfig good = smallest_config();
  EXPECT_EQ(refusal_of(system, good), "");
  kv::KvConfig bad = good;
  bad.key_size = 17;
  EXPECT_EQ(refusal_of(system, bad), GetParam() + ": key_size is 17, but must be 1 to 16");
  bad = good;
  bad.max_value_size = 64;
  EXPECT_EQ(refusal_of(system, bad), GetParam() + ": max_value_size is 64, but must be 15 to 15");
  bad = good;
  bad.records = 0;
  EXPECT_EQ(refusal_of(system, bad), GetParam() + ": records is 0, but must be 1 to 2147483648");
  bad = good;
  bad.sessions = 0;
  EXPECT_EQ(refusal_of(system, bad), GetParam() + ": sessions is 0, but must be 1 to 65536");
  expect_parameters_refused(system, {{"resizes", 33}, {"log_slots", 1}, {"queue_depth", 0}});
}

// All tables that there may ever be must be addressable.
TEST_P(HashParameters, TablesThatNoMemoryHoldsAreRefused) {
  const kv::KvSystem& system = find_kv_system(GetParam());
  const std::string buckets = GetParam() == "level" ? "top_buckets" : "buckets";
  kv::KvConfig bad = smallest_config();
  bad.parameters[buckets] = std::uint64_t{1} << 32;
  bad.parameters["resizes"] = 9;
  EXPECT_EQ(refusal_of(system, bad),
            GetParam() + ": " + buckets +
                " is 4294967296 and resizes 9, but a table of 4294967296 buckets can be doubled "
                "at most 8 times: lower one of them");
}

}  // namespace
}  // namespace perdura::systems::test
