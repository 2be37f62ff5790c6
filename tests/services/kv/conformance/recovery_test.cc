// The server's process is killed at many moments of a run and started again on the same pool:
// nothing acknowledged is lost, nothing is torn or invented, and the store goes on.
#include <set>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/kv/small_store.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {
namespace {

class Recovery : public testing::TestWithParam<Subject> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }

  kv::KvConfig config() const {
    return fit(system(), {.key_size = 16,
                          .value_size = 200,
                          .max_value_size = 200,
                          .records = 50,
                          .writes = 5000,
                          .sessions = 8,
                          .parameters = {}});
  }
  Bytes value_size() const { return config().value_size; }
};

std::vector<Subject> on_sim() {
  std::vector<Subject> subjects;
  for (const kv::KvSystem& system : kv_systems())
    subjects.push_back({std::string(system.name), "sim"});
  return subjects;
}
INSTANTIATE_TEST_SUITE_P(All, Recovery, testing::ValuesIn(on_sim()), subject_name);

constexpr std::uint64_t kKeys = 6;

// What the clients know of a key: the last version acknowledged, and one that may have taken
// effect. Version 0 means absent.
struct Known {
  std::uint64_t acknowledged = 0;
  std::uint64_t uncertain = 0;
};

TEST_P(Recovery, NothingAcknowledgedIsLostWhereverTheServerDies) {
  // A run of the same history lasts this long without a kill; kills are spread over it evenly.
  constexpr int kKills = 150;
  int kills_in_the_middle = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill number " << kill);
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    std::array<Known, kKeys * 2> known{};
    bool killed = false;
    auto server = [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", config());
      co_await partition->serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, server);

    auto writer = [&](std::uint64_t first) {
      return [&, first](Thread& thread) -> Task<> {
        const auto session = co_await system().connect(thread, {0, 0}, config());
        for (std::uint64_t i = 1; i <= 60; ++i) {
          const std::uint64_t number = first + i % kKeys;
          const Buffer key = key_of(number);
          const bool erase = i % 7 == 0;
          known[number].uncertain = erase ? 0 : i;
          const Buffer value = value_of(number, i, value_size());
          const auto done =
              erase ? co_await session->erase(key) : co_await session->put(key, value);
          if (!done && done.error() != kv::Error::not_found) break;
          known[number].acknowledged = known[number].uncertain;
        }
      };
    };
    platform.start(1, 1, CompletionMode::polling, writer(0));
    platform.start(2, 2, CompletionMode::polling, writer(kKeys));
    platform.at(Time(Picoseconds(Microseconds(10)) * (kill + 1)), [&] {
      killed = true;
      platform.kill(0);
      platform.start_service(0, 0, CompletionMode::polling, server);
    });
    platform.start(3, 3, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      // Long after the kill, when the writers have found out.
      co_await sleep_for(std::chrono::seconds(3));
      const auto session = co_await system().connect(thread, {0, 0}, config());
      Buffer into(4096);
      for (int round = 0; round < 2; ++round) {
        for (std::uint64_t number = 0; number < known.size(); ++number) {
          const Buffer key = key_of(number);
          const auto got = co_await session->get(key, into);
          std::uint64_t version = 0;
          if (got) {
            const auto whole = version_of(number, std::span(into).first(*got));
            EXPECT_TRUE(whole.has_value()) << "torn value of key " << number;
            version = whole.value_or(0);
          } else {
            EXPECT_EQ(got.error(), kv::Error::not_found);
          }
          if (round == 0) {
            EXPECT_TRUE(version == known[number].acknowledged || version == known[number].uncertain)
                << "key " << number << " has version " << version << ", acknowledged "
                << known[number].acknowledged << ", uncertain " << known[number].uncertain;
          } else {
            EXPECT_EQ(version, 1000U);
          }
          // The recovered store takes writes.
          const Buffer value = value_of(number, 1000, value_size());
          EXPECT_TRUE((co_await session->put(key, value)).has_value());
        }
      }
    });
    platform.run();
    EXPECT_TRUE(killed);
    for (const Known& key : known) kills_in_the_middle += key.acknowledged != key.uncertain ? 1 : 0;
  }
  // The test would prove little if the server were always idle when it dies.
  EXPECT_GT(kills_in_the_middle, kKills / 4);
}

// A put that was refused for want of space has no effect, not even when there is room again: the
// store is filled, some keys are deleted, and the server dies before or after some are put again.
TEST_P(Recovery, ARefusedPutIsNotThereAfterwards) {
  kv::KvConfig full = config();
  full.writes = full.records;
  services::make_small(system(), 0, full);
  for (const std::size_t put_again : {0, 4}) {
    SCOPED_TRACE(testing::Message() << put_again << " keys are put again");
    const auto made = perdura::test::make_platform("sim", 2);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    auto server = [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", full);
      co_await partition->serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, server);
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      std::set<std::uint64_t> there;
      std::set<std::uint64_t> refused;
      auto session = co_await system().connect(thread, {0, 0}, full);
      for (std::uint64_t number = 0; number < 20'000 && refused.size() < 20; ++number) {
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, 1, value_size());
        const auto done = co_await session->put(key, value);
        (done ? there : refused).insert(number);
      }
      EXPECT_FALSE(refused.empty());
      // The oldest, of which a log holds no records any more. Where a delete takes space, it may be
      // refused, too.
      std::vector<std::uint64_t> deleted;
      for (const std::uint64_t number : std::vector(there.begin(), std::next(there.begin(), 8))) {
        const Buffer key = key_of(number);
        if (!(co_await session->erase(key)).has_value()) continue;
        there.erase(number);
        deleted.push_back(number);
      }
      for (std::size_t i = 0; i < std::min(put_again, deleted.size()); ++i) {
        const Buffer key = key_of(deleted[i]);
        const Buffer value = value_of(deleted[i], 2, value_size());
        if ((co_await session->put(key, value)).has_value()) there.insert(deleted[i]);
      }
      platform.kill(0);
      platform.start_service(0, 0, CompletionMode::polling, server);
      session = co_await system().connect(thread, {0, 0}, full);
      Buffer into(4096);
      for (std::uint64_t number = 0; number <= *refused.rbegin(); ++number) {
        const Buffer key = key_of(number);
        const bool found = (co_await session->get(key, into)).has_value();
        EXPECT_EQ(found, there.contains(number)) << "key " << number;
      }
    });
    platform.run();
  }
}

// What a recovered store gives to new keys belongs to no old one: the server dies and is started
// again while the store is filled, up to the last key that it takes.
TEST_P(Recovery, AStoreThatWasRestartedOverwritesNothing) {
  constexpr std::uint64_t kBetweenDeaths = 16;
  kv::KvConfig full = config();
  full.writes = full.records;
  const auto made = perdura::test::make_platform("sim", 2);
  auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
  auto server = [&](Thread& thread) -> Task<> {
    const auto partition = system().open(thread, "pool", full);
    co_await partition->serve();
  };
  platform.start_service(0, 0, CompletionMode::polling, server);
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::set<std::uint64_t> there;
    auto session = co_await system().connect(thread, {0, 0}, full);
    std::uint64_t refused = 0;
    for (std::uint64_t number = 0; number < 20'000 && refused < 20; ++number) {
      if (number % kBetweenDeaths == kBetweenDeaths - 1) {
        platform.kill(0);
        platform.start_service(0, 0, CompletionMode::polling, server);
        session = co_await system().connect(thread, {0, 0}, full);
      }
      const Buffer key = key_of(number);
      const Buffer value = value_of(number, number, value_size());
      if ((co_await session->put(key, value)).has_value()) {
        there.insert(number);
      } else {
        ++refused;
      }
    }
    EXPECT_GE(there.size(), full.records);
    Buffer into(4096);
    for (const std::uint64_t number : there) {
      const Buffer key = key_of(number);
      const auto got = co_await session->get(key, into);
      EXPECT_TRUE(got.has_value()) << "key " << number;
      if (got) {
        EXPECT_EQ(version_of(number, std::span(into).first(*got)), number);
      }
    }
  });
  platform.run();
}

// A client dies in the middle of a put: the others see the old or the new value, and can write.
TEST_P(Recovery, AClientThatDiesLeavesOldOrNew) {
  int cut_off = 0;
  for (int kill = 0; kill < 120; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill number " << kill);
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    Known known;
    bool dead = false;
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", config());
      co_await partition->serve();
    });
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, config());
      const Buffer key = key_of(7);
      for (std::uint64_t version = 1;; ++version) {
        known.uncertain = version;
        const Buffer value = value_of(7, version, value_size());
        EXPECT_TRUE((co_await session->put(key, value)).has_value());
        known.acknowledged = version;
      }
    });
    platform.at(Time(Microseconds(100)) + Nanoseconds(137) * kill, [&] {
      dead = true;
      platform.kill(1);
    });
    platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, config());
      const Buffer key = key_of(7);
      Buffer into(4096);
      std::uint64_t seen = 0;
      for (int after_death = 0; after_death < 20;) {
        after_death += dead ? 1 : 0;
        const std::uint64_t floor = std::max(known.acknowledged, seen);
        const auto got = co_await session->get(key, into);
        if (!got) {
          EXPECT_EQ(got.error(), kv::Error::not_found);
          EXPECT_EQ(floor, 0U);
          continue;
        }
        const auto version = version_of(7, std::span(into).first(*got));
        EXPECT_TRUE(version.has_value());
        EXPECT_GE(version.value_or(0), floor);
        EXPECT_LE(version.value_or(0), known.uncertain);
        seen = version.value_or(0);
      }
      const Buffer value = value_of(7, 5000, value_size());
      EXPECT_TRUE((co_await session->put(key, value)).has_value());
      const auto got = co_await session->get(key, into);
      EXPECT_TRUE(got.has_value());
      if (got) {
        EXPECT_EQ(version_of(7, std::span(into).first(*got)), 5000U);
      }
    });
    platform.run();
    if (known.acknowledged != known.uncertain) ++cut_off;
  }
  EXPECT_GT(cut_off, 60);
}

TEST_P(Recovery, ADamagedOrDifferentPoolIsRefusedInOneLine) {
  auto open_with = [&](kv::KvConfig second, bool damage) {
    const auto platform = perdura::test::make_platform("sim", 2);
    platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      system().open(thread, "pool", config());
      if (damage) {
        const auto pool = thread.node.open_region("pool");
        pool->store(16, 0xDEADBEEF);
      }
      system().open(thread, "pool", second);
      co_return;
    });
    platform->run();
  };
  EXPECT_NO_THROW(open_with(config(), false));
  kv::KvConfig other = config();
  other.value_size = other.max_value_size = value_size() / 2;
  for (const bool damage : {true, false}) {
    try {
      open_with(damage ? config() : other, damage);
      FAIL() << "was opened";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("pool"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace perdura::systems::test
