// What every key-value system must do: behave like a map for one client, be linearizable for
// several, never return a torn or invented value, and be full without losing anything.
#include <atomic>
#include <map>
#include <random>

#include "services/kv/partitioned.h"
#include "tests/services/kv/conformance/recording.h"

namespace perdura::systems::test {
namespace {

INSTANTIATE_TEST_SUITE_P(All, KvTest, testing::ValuesIn(all_subjects()), subject_name);

// A system that hashes keys by the function and the seed by which keys are assigned to partitions
// would find the keys of a partition in a part of its table only, and that part full long before
// the rest (services/kv/partitioned.cc).
TEST_P(KvTest, APartitionOfManyHoldsItsShareOfTheKeys) {
  constexpr std::uint32_t kPartitions = 8;
  kv::KvConfig whole = config_;
  whole.records = 6400;
  if (find_parameter(system().parameters, "resizes") != nullptr) whole.parameters["resizes"] = 0;
  config_ = kv::partition_config(whole, kPartitions);
  serve();
  connect([&](kv::KvSession& session, Thread&) -> Task<> {
    const Buffer value = value_of(1, 1, fit_value(64));
    std::uint64_t stored = 0;
    for (std::uint64_t number = 0; number < whole.records; ++number) {
      const Buffer key = key_of(number, config_.key_size);
      if (kv::partition_of(key, kPartitions) != 0) continue;
      const auto put = co_await session.put(key, value);
      EXPECT_TRUE(put.has_value()) << stored << " keys: " << to_string(put.error());
      if (!put) co_return;
      ++stored;
    }
    EXPECT_GT(stored, whole.records / kPartitions / 2);
  });
  run();
}

TEST_P(KvTest, BehavesLikeAMapForOneClient) {
  const unsigned seed = 20190601;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  serve();
  connect([&](kv::KvSession& session, Thread&) -> Task<> {
    std::mt19937_64 random(seed);
    std::map<std::string, Buffer> model;
    Buffer into(4096);
    for (int i = 0; i < 6000; ++i) {
      // Mostly typical sizes; also short, long and very long keys, and other values.
      const std::uint64_t number = random() % 150;
      const Bytes key_size = number % 10 == 7   ? 9
                             : number % 10 == 8 ? 40
                             : number % 10 == 9 ? 300
                                                : 16;
      const Buffer key = key_of(number, system().fit_key(key_size));
      const std::string name(reinterpret_cast<const char*>(key.data()), key.size());
      const Bytes sizes[] = {64, 64, 64, 8, 65, 1000, 2048};
      switch (random() % 4) {
        case 0:
        case 1: {
          const Bytes size = fit_value(sizes[random() % 7]);
          const Buffer value = value_of(number, random() % 1000000, size);
          const auto put = co_await session.put(key, value);
          EXPECT_TRUE(put.has_value()) << to_string(put.error());
          model[name] = value;
          break;
        }
        case 2: {
          const auto got = co_await session.get(key, into);
          const auto expected = model.find(name);
          if (expected == model.end()) {
            EXPECT_FALSE(got.has_value());
            if (!got) {
              EXPECT_EQ(got.error(), kv::Error::not_found);
            }
          } else {
            EXPECT_TRUE(got.has_value()) << "operation " << i << ": " << to_string(got.error());
            if (got) {
              EXPECT_EQ(Buffer(into.begin(), into.begin() + *got), expected->second);
            }
          }
          break;
        }
        default: {
          const auto erased = co_await session.erase(key);
          EXPECT_EQ(erased.has_value(), model.erase(name) == 1) << "operation " << i;
          if (!erased) {
            EXPECT_EQ(erased.error(), kv::Error::not_found);
          }
          break;
        }
      }
    }
    for (const auto& [name, value] : model) {
      const Buffer key = to_bytes(name);
      const auto got = co_await session.get(key, into);
      EXPECT_TRUE(got.has_value());
      if (got) {
        EXPECT_EQ(Buffer(into.begin(), into.begin() + *got), value);
      }
    }
  });
  run();
}

TEST_P(KvTest, OperationsOfASessionMayOverlap) {
  serve();
  connect([this](kv::KvSession& session, Thread& thread) -> Task<> {
    constexpr int kLanes = 8;
    int ended = 0;
    auto lane = [&](int id) -> Task<> {
      Buffer into(4096);
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t number = id * 1000 + i % 10;
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, i, fit_value(64));
        const auto put = co_await session.put(key, value);
        EXPECT_TRUE(put.has_value());
        const auto got = co_await session.get(key, into);
        EXPECT_TRUE(got.has_value());
        if (got) {
          EXPECT_EQ(version_of(number, std::span(into).first(*got)), i);
        }
      }
      ++ended;
    };
    for (int id = 0; id < kLanes; ++id) thread.executor.spawn(lane(id));
    while (ended < kLanes) co_await sleep_for(Microseconds(10));
  });
  run();
}

// One client writes a key over and over, the others read it at the same time. Values are long, so
// that a torn one has time to be seen.
TEST_P(KvTest, ReadersOfAKeyWithOneWriterSeeALinearizableHistory) {
  const Bytes size = fit_value(1024);
  config_.value_size = size;
  std::atomic<bool> done{false};
  Recording recording;
  serve();
  connect(recording.of([&](kv::KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t version = 1; version <= 800; ++version) {
      const Buffer key = key_of(1);
      const Buffer value = value_of(1, version, size);
      const auto put = co_await session.put(key, value);
      EXPECT_TRUE(put.has_value());
    }
    done = true;
  }));
  for (int reader = 0; reader < 3; ++reader) {
    connect(recording.of([&](kv::KvSession& session, Thread&) -> Task<> {
      Buffer into(4096);
      const Buffer key = key_of(1);
      for (int reads = 0; reads < 250 || !done; ++reads) {
        const auto got = co_await session.get(key, into);
        if (!got) {
          EXPECT_EQ(got.error(), kv::Error::not_found);
        }
      }
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_GE(verdict.operations, 800U + 3 * 250U);
}

// Several clients write, delete and read the same few keys, two operations each at a time.
TEST_P(KvTest, WritersOfTheSameKeysMakeALinearizableHistory) {
  constexpr std::uint64_t kClients = 4;
  constexpr std::uint64_t kKeys = 3;
  const unsigned seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  config_.writes = 2 * kClients * 2 * 400;
  Recording recording;
  serve();
  for (std::uint64_t c = 0; c < kClients; ++c) {
    connect(recording.of([c, this](kv::KvSession& session, Thread& thread) -> Task<> {
      int ended = 0;
      auto lane = [&](std::uint64_t id) -> Task<> {
        Buffer into(4096);
        std::mt19937_64 random(seed + id);
        for (std::uint64_t i = 1; i <= 400; ++i) {
          const std::uint64_t number = random() % kKeys;
          const Buffer key = key_of(number);
          const std::uint64_t kind = random() % 10;
          kv::Error error = kv::Error::not_found;
          if (kind < 5) {
            const Buffer value = value_of(number, i * kClients * 2 + id, fit_value(64));
            const auto put = co_await session.put(key, value);
            EXPECT_TRUE(put.has_value());
          } else if (kind < 6) {
            const auto erased = co_await session.erase(key);
            if (!erased) error = erased.error();
          } else {
            const auto got = co_await session.get(key, into);
            if (!got) error = got.error();
          }
          EXPECT_EQ(error, kv::Error::not_found) << to_string(error);
        }
        ++ended;
      };
      thread.executor.spawn(lane(2 * c));
      thread.executor.spawn(lane(2 * c + 1));
      while (ended < 2) co_await sleep_for(Microseconds(5));
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.operations, kClients * 2 * 400);
  EXPECT_EQ(verdict.keys, kKeys);
}

TEST_P(KvTest, AFullStoreSaysSoAndKeepsEverythingAcknowledged) {
  config_.records = 64;
  config_.writes = 64;
  config_.max_value_size = config_.value_size;
  if (GetParam().system == "erda") {
    config_.parameters = {{"segment_bytes", 2048}, {"region_bytes", 8192}};
  }
  serve();
  connect([&](kv::KvSession& session, Thread&) -> Task<> {
    std::map<std::uint64_t, std::uint64_t> acknowledged;
    bool full = false;
    for (std::uint64_t number = 0; number < 20000; ++number) {
      const Buffer key = key_of(number);
      const Buffer value = value_of(number, number, fit_value(64));
      const auto put = co_await session.put(key, value);
      if (put) {
        acknowledged[number] = number;
      } else {
        EXPECT_EQ(put.error(), kv::Error::out_of_space);
        full = true;
        if (number > acknowledged.size() + 20) break;
      }
    }
    EXPECT_TRUE(full);
    EXPECT_GE(acknowledged.size(), config_.records);
    Buffer into(4096);
    for (const auto& [number, version] : acknowledged) {
      const Buffer key = key_of(number);
      const auto got = co_await session.get(key, into);
      EXPECT_TRUE(got.has_value());
      if (got) {
        EXPECT_EQ(version_of(number, std::span(into).first(*got)), version);
      }
    }
  });
  run();
}

TEST_P(KvTest, TooLongIsRefusedAndHarmsNothing) {
  serve();
  connect([this](kv::KvSession& session, Thread&) -> Task<> {
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 5, fit_value(64));
    EXPECT_TRUE((co_await session.put(key, value)).has_value());
    const Buffer huge = value_of(1, 6, 9 * MiB);
    const auto put = co_await session.put(key, huge);
    EXPECT_FALSE(put.has_value());
    if (!put) {
      EXPECT_EQ(put.error(), kv::Error::too_large);
    }
    Buffer into(4096);
    const auto got = co_await session.get(key, into);
    EXPECT_TRUE(got.has_value());
    if (got) {
      EXPECT_EQ(version_of(1, std::span(into).first(*got)), 5U);
    }
    Buffer small(10);
    const auto cut = co_await session.get(key, small);
    EXPECT_FALSE(cut.has_value());
    if (!cut) {
      EXPECT_EQ(cut.error(), kv::Error::too_large);
    }
  });
  run();
}

TEST_P(KvTest, ServesSleepingThreadsToo) {
  serve(0, CompletionMode::event);
  for (int c = 0; c < 2; ++c) {
    connect(
        [c, this](kv::KvSession& session, Thread&) -> Task<> {
          Buffer into(4096);
          for (std::uint64_t i = 0; i < 50; ++i) {
            const std::uint64_t number = c * 100 + i;
            const Buffer key = key_of(number);
            const Buffer value = value_of(number, i, fit_value(64));
            EXPECT_TRUE((co_await session.put(key, value)).has_value());
            const auto got = co_await session.get(key, into);
            EXPECT_TRUE(got.has_value());
            EXPECT_TRUE((co_await session.erase(key)).has_value());
            EXPECT_FALSE((co_await session.get(key, into)).has_value());
          }
        },
        0, CompletionMode::event);
  }
  run();
}

}  // namespace
}  // namespace perdura::systems::test
