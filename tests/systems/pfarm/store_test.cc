// What is particular to a store with P-FaRM-KV: a get is one READ, also after the table has been
// resized under the client; nothing is lost or missed while it is, or while items move, with or
// without a power failure.
#include <atomic>
#include <random>
#include <set>

#include "platform/error.h"
#include "platform/faults/faulty_thread.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "systems/bucket_hash/pool.h"
#include "systems/pfarm/parameters.h"
#include "tests/systems/kv/recording.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

constexpr Bytes kValue = 15;

class PFarmStore : public KvTest {
 protected:
  // A table that is soon too small; `resizes` times.
  void start_small(std::uint64_t buckets, std::uint64_t overflow_percent, std::uint64_t resizes) {
    config_.parameters = {
        {"buckets", buckets}, {"overflow_percent", overflow_percent}, {"resizes", resizes}};
  }
  static Task<bool> put(KvSession& session, std::uint64_t number, std::uint64_t version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version, kValue);
    co_return (co_await session.put(key, value)).has_value();
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
  std::erase_if(subjects, [](const Subject& subject) { return subject.system != "p-farm-kv"; });
  return subjects;
}
INSTANTIATE_TEST_SUITE_P(All, PFarmStore, testing::ValuesIn(on_all_platforms()), subject_name);

TEST_P(PFarmStore, AGetIsOneRead) {
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
    for (std::uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(co_await put(session, i, i + 1));
    const std::uint64_t before = fabric.counts().operations;
    for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(co_await get(session, i), i + 1);
    for (std::uint64_t i = 500; i < 1000; ++i) EXPECT_EQ(co_await get(session, i), 0U);
    EXPECT_EQ(fabric.counts().operations - before, 1000U);
  });
  run();
}

// Without overflow blocks it always is, however full the table.
TEST_P(PFarmStore, AGetIsOneReadFromAFullTable) {
  start_small(16, 0, 0);
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
    std::set<std::uint64_t> there;
    for (std::uint64_t i = 0; i < 200; ++i) {
      if (co_await put(session, i, i + 1)) there.insert(i);
    }
    EXPECT_GT(there.size(), 60U);
    const std::uint64_t before = fabric.counts().operations;
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(co_await get(session, i), there.contains(i) ? i + 1 : 0U);
    }
    EXPECT_EQ(fabric.counts().operations - before, 200U);
  });
  run();
}

// What is in the neighborhood is found by one READ; only what is not, and has a home with overflow
// blocks, takes one more for each: exactly those that the same puts leave so in a table of ours.
TEST_P(PFarmStore, AGetFromAnOverflowBlockIsOneMoreRead) {
  start_small(8, 50, 0);
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
    const pfarm::Geometry geometry{8, 50, 0};
    const pfarm::Table table = geometry.table(0);
    perdura::test::PlainMemory memory(geometry.size());
    pfarm::Index index(memory.region(), 0, geometry);
    std::set<std::uint64_t> there;
    for (std::uint64_t i = 0; i < 80; ++i) {
      const Buffer key = key_of(i);
      const bool fits =
          index.put(bucket_hash::Slot::of(key, value_of(i, i + 1, kValue))).has_value();
      EXPECT_EQ(co_await put(session, i, i + 1), fits);
      if (fits) there.insert(i);
    }
    EXPECT_EQ(index.blocks_used(), 4U);
    std::map<std::uint64_t, std::uint64_t> of_reads;
    for (std::uint64_t i = 0; i < 80; ++i) {
      const Buffer key = key_of(i);
      const auto text = pfarm::test::as_text(key);
      const auto expected = pfarm::test::read_as_client(memory.bytes(), geometry, 0, text);
      const std::uint64_t before = fabric.counts().operations;
      EXPECT_EQ(co_await get(session, i), there.contains(i) ? i + 1 : 0U);
      EXPECT_EQ(fabric.counts().operations - before, expected.reads);
      const auto near = pfarm::search_neighborhood(
          memory.bytes().subspan(table.bucket_offset(table.home(bucket_hash::Slot::of(key))),
                                 pfarm::kNeighborhoodSize),
          bucket_hash::Slot::of(key));
      if (near.found || near.link == 0) {
        EXPECT_EQ(expected.reads, 1U);
      }
      ++of_reads[expected.reads];
    }
    EXPECT_GT(of_reads[2], 4U);
    EXPECT_GT(of_reads[1], 40U);
  });
  run();
}

TEST_P(PFarmStore, AGetIsOneReadAgainAfterResizes) {
  start_small(1, 0, 8);
  serve();
  connect_counted([this](KvSession& session, const FaultyThread& fabric) -> Task<> {
    EXPECT_TRUE(co_await put(session, 0, 1));
    for (std::uint64_t i = 1; i < 100; ++i) EXPECT_TRUE(co_await put(session, i, i + 1));
    std::uint64_t before = fabric.counts().operations;
    EXPECT_EQ(co_await get(session, 0), 1U);
    EXPECT_GT(fabric.counts().operations - before, 2U) << "through the old tables";
    before = fabric.counts().operations;
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(co_await get(session, i), i + 1);
    EXPECT_EQ(fabric.counts().operations - before, 100U);
  });
  run();
}

// Readers that knew the first table, and others that come in between.
TEST_P(PFarmStore, ResizesWhileClientsReadAndWriteAreLinearizable) {
  constexpr std::uint64_t kKeys = 240;
  start_small(2, 50, 10);
  config_.records = kKeys;
  std::atomic<std::uint64_t> written{0};
  Recording recording;
  serve();
  connect(recording.of([&](KvSession& session, Thread&) -> Task<> {
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      EXPECT_TRUE(co_await put(session, number, 1));
      EXPECT_TRUE(co_await put(session, number / 2, number + 2));
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

// A table that is always nearly full, so that items move all the time; some keys are written once
// and must be found at every moment from then on.
TEST_P(PFarmStore, MovementsWhileClientsReadAreLinearizable) {
  constexpr std::uint64_t kKeys = 80;
  constexpr std::uint64_t kStable = 20;
  constexpr int kWrites = 500;
  start_small(16, 0, 0);
  std::atomic<bool> loaded{false};
  std::atomic<bool> writing{true};
  Recording recording;
  serve();
  connect(recording.of([&](KvSession& session, Thread&) -> Task<> {
    std::mt19937_64 random(7);
    for (std::uint64_t number = 0; number < kStable; ++number) {
      EXPECT_TRUE(co_await put(session, number, 1));
    }
    loaded = true;
    for (int i = 0; i < kWrites; ++i) {
      const std::uint64_t number = kStable + random() % (kKeys - kStable);
      if (random() % 4 == 0) {
        const Buffer key = key_of(number);
        co_await session.erase(key);
      } else {
        co_await put(session, number, static_cast<std::uint64_t>(i) + 2);
      }
    }
    writing = false;
  }));
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    connect(recording.of([&, reader](KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 random(reader);
      while (!loaded) co_await sleep_for(Microseconds(1));
      for (std::uint64_t i = 0; writing; ++i) {
        if (i % 4 == 0) {
          co_await get(session, random() % kKeys);
        } else {
          EXPECT_EQ(co_await get(session, random() % kStable), 1U);
        }
      }
    }));
  }
  run();
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
}

// The server's power fails at every moment of a history in which the table is resized, while
// another client reads.
TEST(PFarmResize, LosesAndMissesNothingWhereverThePowerFails) {
  const KvSystem& system = find_kv_system("p-farm-kv");
  const KvConfig config{.key_size = 16,
                        .value_size = kValue,
                        .max_value_size = kValue,
                        .records = 16,
                        .writes = 100,
                        .sessions = 4,
                        .parameters = {{"buckets", 1}, {"overflow_percent", 0}, {"resizes", 2}}};
  constexpr std::uint64_t kKeys = 16;
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
    EXPECT_GT(most, least) << "some failures should come after a resize has begun";
    if (testing::Test::HasFailure()) return;
  }
}

// A record that the last of many workers left is found by a store with one.
TEST(PFarmPool, RecoversWhatMoreWorkersLeft) {
  const KvSystem& system = find_kv_system("p-farm-kv");
  KvConfig config;
  config.value_size = config.max_value_size = kValue;
  config.workers = pfarm::kMaxWorkers;
  const pfarm::Geometry geometry = pfarm::Parameters::of(config).geometry;
  const Buffer key = key_of(7);
  const Buffer value = value_of(7, 1, kValue);
  const auto platform = perdura::test::make_platform("sim", 2);
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    system.open(thread, "pool", config);
    {
      const auto region = thread.node.open_region("pool");
      pfarm::Memory memory(*region, bucket_hash::kIndexOffset, pfarm::Flushing::lines);
      pfarm::RedoLog log(memory, geometry.log_offset(pfarm::kMaxWorkers - 1));
      const pfarm::Table table = geometry.table(0);
      const auto item = bucket_hash::Slot::of(key, value);
      log.write({.item = item,
                 .place = pfarm::Record::place_of(table.bucket_offset(table.home(item)), 2),
                 .header = pfarm::bit_of(2)});
      log.commit();
    }
    config.workers = 1;
    const auto partition = system.open(thread, "pool", config);
    EXPECT_EQ(partition->space().capacity - partition->space().free, bucket_hash::kSlotSize);
    co_await partition->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await system.connect(thread, {0, 0}, config);
    Buffer into(kValue);
    const auto got = co_await session->get(key, into);
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(version_of(7, into), 1U);
  });
  platform->run();
}

TEST(PFarmParameters, TheImpossibleIsRefusedInOneLine) {
  const KvSystem& system = find_kv_system("p-farm-kv");
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
  EXPECT_EQ(message_of(bad), "p-farm-kv: key_size is 17, but must be 1 to 16");
  bad = good;
  bad.max_value_size = 64;
  EXPECT_EQ(message_of(bad), "p-farm-kv: max_value_size is 64, but must be 15 to 15");
  bad = good;
  bad.workers = 65;
  EXPECT_EQ(message_of(bad), "p-farm-kv: workers is 65, but must be 1 to 64");
  const std::pair<std::string, std::uint64_t> parameters[] = {{"buckets", 0},
                                                              {"overflow_percent", 101},
                                                              {"resizes", 33},
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
