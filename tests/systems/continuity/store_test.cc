// What is particular to a store with continuity hashing: a get is one READ, also after the table
// has been resized under the client; nothing is lost or missed while it is, with or without a power
// failure.
#include <atomic>
#include <random>
#include <set>

#include "platform/error.h"
#include "platform/faults/faulty_thread.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "tests/systems/kv/recording.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

constexpr Bytes kValue = 15;

class ContinuityStore : public KvTest {
 protected:
  // A table that is soon too small; `resizes` times.
  void start_small(std::uint64_t resizes, std::uint64_t added_percent = 0) {
    config_.parameters = {
        {"buckets", 2}, {"sbuckets", 1}, {"resizes", resizes}, {"added_percent", added_percent}};
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
  std::erase_if(subjects, [](const Subject& subject) { return subject.system != "continuity"; });
  return subjects;
}
INSTANTIATE_TEST_SUITE_P(All, ContinuityStore, testing::ValuesIn(on_all_platforms()), subject_name);

TEST_P(ContinuityStore, AGetIsOneRead) {
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
    for (std::uint64_t i = 0; i < 400; ++i) EXPECT_TRUE(co_await put(session, i, i + 1));
    const std::uint64_t before = fabric.counts().operations;
    for (std::uint64_t i = 0; i < 400; ++i) EXPECT_EQ(co_await get(session, i), i + 1);
    for (std::uint64_t i = 400; i < 800; ++i) EXPECT_EQ(co_await get(session, i), 0U);
    EXPECT_EQ(fabric.counts().operations - before, 800U);
  });
  run();
}

// Section II: "a client needs at most two RDMA round-trips (one for the segment and the other for
// the added SBuckets)".
TEST_P(ContinuityStore, AGetFromAddedSBucketsIsTwoReads) {
  start_small(0, 100);
  serve();
  connect_counted([](KvSession& session, const FaultyThread& fabric) -> Task<> {
    std::uint64_t items = 0;
    while (co_await put(session, items, items + 1)) ++items;
    EXPECT_GT(items, 8U);
    std::set<std::uint64_t> reads;
    for (std::uint64_t i = 0; i < items; ++i) {
      const std::uint64_t before = fabric.counts().operations;
      EXPECT_EQ(co_await get(session, i), i + 1);
      reads.insert(fabric.counts().operations - before);
    }
    EXPECT_EQ(reads, (std::set<std::uint64_t>{1, 2}));
  });
  run();
}

TEST_P(ContinuityStore, AGetIsOneReadAgainAfterResizes) {
  start_small(8);
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
TEST_P(ContinuityStore, ResizesWhileClientsReadAndWriteAreLinearizable) {
  constexpr std::uint64_t kKeys = 240;
  start_small(10, 10);
  config_.parameters["resized_sbuckets"] = 3;
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

// The server's power fails at every moment of a history in which the table is resized, while
// another client reads.
TEST(ContinuityResize, LosesAndMissesNothingWhereverThePowerFails) {
  const KvSystem& system = find_kv_system("continuity");
  const KvConfig config{
      .key_size = 16,
      .value_size = kValue,
      .max_value_size = kValue,
      .records = 16,
      .writes = 100,
      .sessions = 4,
      .parameters = {{"buckets", 2}, {"sbuckets", 1}, {"resizes", 2}, {"added_percent", 0}}};
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

TEST(ContinuityParameters, TheImpossibleIsRefusedInOneLine) {
  const KvSystem& system = find_kv_system("continuity");
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
  EXPECT_EQ(message_of(bad), "continuity: key_size is 17, but must be 1 to 16");
  bad = good;
  bad.max_value_size = 64;
  EXPECT_EQ(message_of(bad), "continuity: max_value_size is 64, but must be 15 to 15");
  const std::pair<std::string, std::uint64_t> parameters[] = {
      {"buckets", 3},          {"buckets", 0},          {"sbuckets", 0},        {"sbuckets", 5},
      {"resized_sbuckets", 2}, {"resized_sbuckets", 5}, {"added_percent", 101}, {"resizes", 33},
      {"log_slots", 1},        {"queue_depth", 0}};
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
