// What is particular to a store with level hashing: a get is one to four READs, one after the
// other; nothing is lost or missed while items are moved and the table is resized, with or without
// a power failure.
#include <atomic>
#include <map>
#include <random>

#include "platform/error.h"
#include "platform/faults/faulty_thread.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "tests/systems/kv/recording.h"
#include "tests/systems/level/support.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

constexpr Bytes kValue = 15;

class LevelStore : public KvTest {
 protected:
  void start_with(std::uint64_t top_buckets, std::uint64_t resizes) {
    config_.parameters = {{"top_buckets", top_buckets}, {"resizes", resizes}};
  }
  static Task<Result<void>> put(KvSession& session, std::uint64_t number, std::uint64_t version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version, kValue);
    co_return co_await session.put(key, value);
  }
  // The version that a get finds, 0 if none.
  static Task<std::uint64_t> get(KvSession& session, std::uint64_t number) {
    const Buffer key = key_of(number);
    Buffer into(kValue);
    const auto got = co_await session.get(key, into);
    if (!got) co_return 0;
    const auto version = version_of(number, std::span(into).first(*got));
    EXPECT_TRUE(version.has_value()) << "torn value of key " << number;
    co_return version.value_or(0);
  }
  // How many gets of these keys took so many READs; each key below `known` has version 1.
  using Reads = std::map<std::uint64_t, std::uint64_t>;
  static Task<Reads> count_reads(KvSession& session, const FaultyThread& fabric,
                                 std::uint64_t first, std::uint64_t last, std::uint64_t version) {
    Reads reads;
    for (std::uint64_t i = first; i < last; ++i) {
      const std::uint64_t before = fabric.counts().operations;
      EXPECT_EQ(co_await get(session, i), version) << "key " << i;
      ++reads[fabric.counts().operations - before];
    }
    co_return reads;
  }
  static std::string text(const Reads& reads) {
    std::string text;
    for (const auto& [count, gets] : reads) text += fmt::format("{} READs: {}  ", count, gets);
    return text;
  }
  // A client whose operations on the fabric are counted.
  using CountedClient = std::function<Task<>(KvSession&, const FaultyThread&)>;
  void connect_counted(CountedClient client) {
    platform().start(
        1, 10, CompletionMode::polling,
        [this, client = std::move(client)](Thread& thread) -> Task<> {
          FaultyThread counted(thread, {});
          const auto session = co_await system().connect(counted.thread(), {0, 0}, config_);
          co_await client(*session, counted);
        });
  }
};

std::vector<Subject> on_all_platforms() {
  std::vector<Subject> subjects = all_subjects();
  std::erase_if(subjects, [](const Subject& subject) { return subject.system != "level"; });
  return subjects;
}
INSTANTIATE_TEST_SUITE_P(All, LevelStore, testing::ValuesIn(on_all_platforms()), subject_name);

// "Multiple RDMA round-trips": as many as candidates are looked at until the key is found.
TEST_P(LevelStore, AGetIsOneToFourReads) {
  start_with(64, 0);
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
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

TEST_P(LevelStore, AGetIsOneToFourReadsAgainAfterResizes) {
  start_with(4, 4);
  serve();
  connect_counted([this](KvSession& session, const FaultyThread& fabric) -> Task<> {
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE((co_await put(session, i, 1)).has_value());
    }
    // The first get that finds nothing where it was goes through all levels, and learns.
    std::uint64_t most = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Reads one = co_await count_reads(session, fabric, i, i + 1, 1);
      most = std::max(most, one.rbegin()->first);
    }
    EXPECT_GT(most, 4U);
    const Reads reads = co_await count_reads(session, fabric, 0, 200, 1);
    EXPECT_LE(reads.rbegin()->first, 4U);
  });
  run();
}

// Readers that knew the first levels, and others that come in between.
TEST_P(LevelStore, ResizesWhileClientsReadAndWriteAreLinearizable) {
  constexpr std::uint64_t kKeys = 240;
  start_with(4, 6);
  config_.records = kKeys;
  std::atomic<std::uint64_t> written{0};
  Recording recording;
  serve();
  connect(recording.of([&](KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      EXPECT_TRUE((co_await put(session, number, 1)).has_value());
      EXPECT_TRUE((co_await put(session, number / 2, number + 2)).has_value());
      if (number % 16 == 5) {
        const Buffer key = key_of(number);
        EXPECT_TRUE((co_await session.erase(key)).has_value());
      }
      written = number + 1;
    }
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 random(reader);
      while (written < kKeys) co_await get(session, random() % (written + 1));
      for (std::uint64_t number = 0; number < kKeys; ++number) co_await get(session, number);
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.keys, kKeys);
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
  level::test::CountingIndex index(memory.region(), 0, geometry);
  std::mt19937_64 random(1);
  while (steps.size() < kSteps) {
    const Step step{random() % 8 == 0, random() % kKeys};
    const Buffer key = key_of(step.key);
    const Buffer value = value_of(step.key, 1, kValue);
    const auto done =
        step.erase ? index.erase(level::Slot::of(key)) : index.put(level::Slot::of(key, value));
    if (done) steps.push_back(step);
  }
  std::cout << index.movements << " movements, " << index.overwritten << " overwritten slots\n";
  EXPECT_GT(index.movements, 20U);
  EXPECT_GT(index.overwritten, 500U);

  start_with(kTopBuckets, 0);
  config_.records = 10;
  std::atomic<bool> writing{true};
  Recording recording(1 << 16);
  serve();
  connect(recording.of([&](KvSession& session, Thread&) -> Task<> {
    std::uint64_t version = 0;
    for (const Step& step : steps) {
      if (step.erase) {
        const Buffer key = key_of(step.key);
        EXPECT_TRUE((co_await session.erase(key)).has_value());
      } else {
        EXPECT_TRUE((co_await put(session, step.key, ++version)).has_value());
      }
    }
    writing = false;
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 choice(reader);
      for (int i = 0; writing && i < 20'000; ++i) co_await get(session, choice() % kKeys);
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.keys, kKeys);
}

TEST_P(LevelStore, AFullTableThatMayNotGrowKeepsEverything) {
  start_with(4, 1);
  config_.records = 10;
  serve();
  connect([](KvSession& session, Thread&) -> Task<> {
    std::uint64_t items = 0;
    for (;; ++items) {
      const auto done = co_await put(session, items, 1);
      if (done) continue;
      EXPECT_EQ(done.error(), Error::out_of_space);
      break;
    }
    EXPECT_GT(items, 32U);
    for (std::uint64_t i = 0; i < items; ++i) EXPECT_EQ(co_await get(session, i), 1U);
    EXPECT_EQ(co_await get(session, items), 0U);
    // Updates and, after a deletion, inserts go on.
    for (std::uint64_t i = 0; i < items; ++i) {
      EXPECT_TRUE((co_await put(session, i, 2)).has_value());
      EXPECT_EQ(co_await get(session, i), 2U);
    }
    const Buffer key = key_of(0);
    EXPECT_TRUE((co_await session.erase(key)).has_value());
    EXPECT_TRUE((co_await put(session, 0, 3)).has_value());
    EXPECT_EQ(co_await get(session, 0), 3U);
  });
  run();
}

// The server's power fails at every moment of a history in which the table is resized, while
// another client reads.
TEST(LevelResize, LosesAndMissesNothingWhereverThePowerFails) {
  const KvSystem& system = find_kv_system("level");
  const KvConfig config{.key_size = 16,
                        .value_size = kValue,
                        .max_value_size = kValue,
                        .records = 16,
                        .writes = 100,
                        .sessions = 4,
                        .parameters = {{"top_buckets", 4}, {"resizes", 1}}};
  constexpr std::uint64_t kKeys = 30;
  const auto find = [](KvSession& session, std::uint64_t number) -> Task<Result<Bytes>> {
    const Buffer key = key_of(number);
    Buffer into(kValue);
    co_return co_await session.get(key, into);
  };
  for (const sim::ExploreOptions& options :
       {sim::ExploreOptions{.images = sim::Images::least},
        sim::ExploreOptions{.images = sim::Images::most},
        sim::ExploreOptions{.images = sim::Images::random, .seed = 1},
        sim::ExploreOptions{.images = sim::Images::all, .stride = 5, .most_images = 100}}) {
    Bytes least = ~Bytes{0};
    Bytes most = 0;
    const sim::Explored explored = sim::explore_failures(options, [&](sim::Failure& failure) {
      SCOPED_TRACE(failure.text());
      const auto made = perdura::test::make_platform("sim", 4);
      auto& platform = static_cast<sim::SimPlatform&>(*made);
      platform.track_durability({pmem::PersistenceDomain::dmp, false});
      std::uint64_t acknowledged = 0;
      bool writing = true;
      int connected = 0;
      failure.enable(false);
      const auto server = [&](Thread& thread) -> Task<> {
        const auto partition = system.open(thread, "pool", config);
        least = std::min(least, partition->space().capacity);
        most = std::max(most, partition->space().capacity);
        co_await partition->serve();
      };
      platform.start_service(0, 0, CompletionMode::polling, server);
      platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        const auto session = co_await system.connect(thread, {0, 0}, config);
        for (++connected; connected < 2;) co_await sleep_for(Microseconds(1));
        failure.enable(true);
        for (; acknowledged < kKeys; ++acknowledged) {
          const Buffer key = key_of(acknowledged);
          const Buffer value = value_of(acknowledged, 1, kValue);
          if (!co_await session->put(key, value)) break;
        }
        writing = false;
      });
      platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        const auto session = co_await system.connect(thread, {0, 0}, config);
        for (++connected; acknowledged == 0 && writing;) co_await sleep_for(Microseconds(1));
        for (std::uint64_t i = 0; writing; ++i) {
          const auto got = co_await find(*session, i % acknowledged);
          if (!got) {
            EXPECT_EQ(got.error(), Error::disconnected);
            break;
          }
        }
      });
      failure.watch(platform, [&](pmem::Choices& choices) {
        platform.fail_power(0, choices);
        platform.start_service(0, 0, CompletionMode::polling, server);
        platform.start(3, 3, CompletionMode::polling, [&](Thread& thread) -> Task<> {
          while (writing) co_await sleep_for(Microseconds(50));
          const auto session = co_await system.connect(thread, {0, 0}, config);
          for (std::uint64_t number = 0; number < acknowledged; ++number) {
            EXPECT_TRUE((co_await find(*session, number)).has_value()) << "key " << number;
          }
        });
      });
      platform.run();
    });
    EXPECT_GT(explored.moments, 300U);
    EXPECT_GE(explored.runs, explored.tried);
    EXPECT_GT(most, least) << "some failures should come after a resize";
    if (testing::Test::HasFailure()) return;
  }
}

TEST(LevelParameters, TheImpossibleIsRefusedInOneLine) {
  const KvSystem& system = find_kv_system("level");
  KvConfig good;
  good.value_size = good.max_value_size = kValue;
  const auto message_of = [&](const KvConfig& config) {
    std::string message;
    const auto platform = perdura::test::make_platform("sim", 1);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      try {
        system.open(thread, "pool", config);
      } catch (const UsageError& error) {
        message = error.what();
      }
      co_return;
    });
    platform->run();
    return message;
  };
  EXPECT_EQ(message_of(good), "");
  KvConfig bad = good;
  bad.key_size = 17;
  EXPECT_EQ(message_of(bad), "level: key_size is 17, but must be 1 to 16");
  bad = good;
  bad.max_value_size = 64;
  EXPECT_EQ(message_of(bad), "level: max_value_size is 64, but must be 15 to 15");
  const std::pair<std::string, std::uint64_t> parameters[] = {{"top_buckets", 6},
                                                              {"top_buckets", 0},
                                                              {"resizes", level::kMaxResizes + 1},
                                                              {"log_slots", 1},
                                                              {"queue_depth", 0}};
  for (const auto& [name, value] : parameters) {
    bad = good;
    bad.parameters[name] = value;
    const std::string message = message_of(bad);
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace perdura::systems::test
