// What every key-value system must do: behave like a map for one client, be linearizable for
// several, never return a torn or invented value, and be full without losing anything.
#include <map>
#include <random>

#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

INSTANTIATE_TEST_SUITE_P(All, KvTest, testing::ValuesIn(all_subjects()), subject_name);

TEST_P(KvTest, BehavesLikeAMapForOneClient) {
  const unsigned seed = 20190601;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  serve();
  connect([&](KvSession& session, Thread&) -> Task<> {
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
      const Buffer key = key_of(number, key_size);
      const std::string name(reinterpret_cast<const char*>(key.data()), key.size());
      const Bytes sizes[] = {64, 64, 64, 8, 65, 1000, 2048};
      switch (random() % 4) {
        case 0:
        case 1: {
          const Bytes size = sizes[random() % 7];
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
              EXPECT_EQ(got.error(), Error::not_found);
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
            EXPECT_EQ(erased.error(), Error::not_found);
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
  connect([](KvSession& session, Thread& thread) -> Task<> {
    constexpr int kLanes = 8;
    int ended = 0;
    auto lane = [&](int id) -> Task<> {
      Buffer into(4096);
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t number = id * 1000 + i % 10;
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, i, 64);
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

// One writer counts a key's version up; readers see, in real time, versions that never go back,
// never lie before the last acknowledged one and never beyond the one being written.
TEST_P(KvTest, ReadersOfAKeyWithOneWriterSeeALinearizableHistory) {
  struct Shared {
    std::atomic<std::uint64_t> started{0};
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<std::uint64_t> seen{0};
    std::atomic<bool> done{false};
  } shared;
  constexpr Bytes kSize = 1024;
  config_.value_size = kSize;
  serve();
  connect([&](KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t version = 1; version <= 1500; ++version) {
      shared.started = version;
      const Buffer key = key_of(1);
      const Buffer value = value_of(1, version, kSize);
      const auto put = co_await session.put(key, value);
      EXPECT_TRUE(put.has_value());
      shared.acknowledged = version;
    }
    shared.done = true;
  });
  for (int reader = 0; reader < 3; ++reader) {
    connect([&](KvSession& session, Thread&) -> Task<> {
      Buffer into(4096);
      const Buffer key = key_of(1);
      while (!shared.done) {
        const std::uint64_t floor = std::max(shared.acknowledged.load(), shared.seen.load());
        const auto got = co_await session.get(key, into);
        const std::uint64_t ceiling = shared.started;
        if (!got) {
          EXPECT_EQ(got.error(), Error::not_found);
          EXPECT_EQ(floor, 0U) << "an acknowledged version has disappeared";
          continue;
        }
        const auto version = version_of(1, std::span(into).first(*got));
        EXPECT_TRUE(version.has_value()) << "a torn value";
        if (!version) continue;
        EXPECT_GE(*version, floor);
        EXPECT_LE(*version, ceiling);
        std::uint64_t seen = shared.seen;
        while (seen < *version && !shared.seen.compare_exchange_weak(seen, *version)) {
        }
      }
    });
  }
  run();
}

// Several clients write the same few keys. Every value read was written by somebody, and in the end
// all agree on a last one.
TEST_P(KvTest, WritersOfTheSameKeysNeverMixTheirValues) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kKeys = 3;
  serve();
  std::atomic<int> writing{kClients};
  std::array<std::array<std::atomic<std::uint64_t>, kKeys>, kClients> last{};
  for (int c = 0; c < kClients; ++c) {
    connect([&, c](KvSession& session, Thread&) -> Task<> {
      Buffer into(4096);
      std::mt19937_64 random(c);
      for (std::uint64_t i = 1; i <= 400; ++i) {
        const std::uint64_t number = random() % kKeys;
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, i * kClients + c, 64);
        const auto put = co_await session.put(key, value);
        EXPECT_TRUE(put.has_value());
        const auto got = co_await session.get(key, into);
        EXPECT_TRUE(got.has_value()) << to_string(got.error());
        if (got) {
          EXPECT_TRUE(version_of(number, std::span(into).first(*got)).has_value());
        }
      }
      --writing;
      while (writing > 0) co_await sleep_for(Microseconds(5));
      for (std::uint64_t number = 0; number < kKeys; ++number) {
        const Buffer key = key_of(number);
        const auto got = co_await session.get(key, into);
        EXPECT_TRUE(got.has_value());
        if (got) last[c][number] = version_of(number, std::span(into).first(*got)).value_or(0);
      }
    });
  }
  run();
  for (int c = 1; c < kClients; ++c) {
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      EXPECT_EQ(last[c][number].load(), last[0][number].load());
    }
  }
}

TEST_P(KvTest, AFullStoreSaysSoAndKeepsEverythingAcknowledged) {
  config_.records = 64;
  config_.writes = 64;
  config_.max_value_size = config_.value_size;
  if (GetParam().system == "erda") {
    config_.parameters = {{"segment_bytes", 2048}, {"region_bytes", 8192}};
  }
  serve();
  connect([&](KvSession& session, Thread&) -> Task<> {
    std::map<std::uint64_t, std::uint64_t> acknowledged;
    bool full = false;
    for (std::uint64_t number = 0; number < 20000; ++number) {
      const Buffer key = key_of(number);
      const Buffer value = value_of(number, number, 64);
      const auto put = co_await session.put(key, value);
      if (put) {
        acknowledged[number] = number;
      } else {
        EXPECT_EQ(put.error(), Error::out_of_space);
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
  connect([](KvSession& session, Thread&) -> Task<> {
    const Buffer key = key_of(1);
    const Buffer value = value_of(1, 5, 64);
    EXPECT_TRUE((co_await session.put(key, value)).has_value());
    const Buffer huge = value_of(1, 6, 9 * MiB);
    const auto put = co_await session.put(key, huge);
    EXPECT_FALSE(put.has_value());
    if (!put) {
      EXPECT_EQ(put.error(), Error::too_large);
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
      EXPECT_EQ(cut.error(), Error::too_large);
    }
  });
  run();
}

TEST_P(KvTest, ServesSleepingThreadsToo) {
  serve(0, CompletionMode::event);
  for (int c = 0; c < 2; ++c) {
    connect(
        [c](KvSession& session, Thread&) -> Task<> {
          Buffer into(4096);
          for (std::uint64_t i = 0; i < 50; ++i) {
            const std::uint64_t number = c * 100 + i;
            const Buffer key = key_of(number);
            const Buffer value = value_of(number, i, 64);
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
