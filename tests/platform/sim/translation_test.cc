// How a NIC finds memory: misses cost, hits do not, larger pages miss less, changes are seen.
#include "platform/fabric/sim/translation.h"

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <random>

#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::Extent;
using fabric::LocalPieces;
using fabric::RemoteKey;
using fabric::sim::TranslationCache;

constexpr Picoseconds kMiss = Microseconds(10);

TranslationProfile translation_of(Bytes page, std::uint32_t entries, std::uint32_t ways) {
  return {.page = page,
          .cache_entries = entries,
          .cache_ways = ways,
          .miss = kMiss,
          .misses_under_way = 2};
}

Time after(Picoseconds time) { return Time(time); }

// --- the cache -------------------------------------------------------------------------------

TEST(TranslationCache, AMissTakesItsTimeAndAHitNone) {
  const TranslationProfile profile = translation_of(4096, 8, 2);
  TranslationCache cache(profile);
  EXPECT_EQ(cache.find(after(kMiss), {1, 5}), after(2 * kMiss));
  EXPECT_EQ(cache.find(after(3 * kMiss), {1, 5}), after(3 * kMiss));
  EXPECT_EQ(cache.find(after(3 * kMiss), {2, 5}), after(4 * kMiss)) << "of another table";
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_EQ(cache.misses(), 2U);
}

TEST(TranslationCache, WhatIsBeingReadIsWaitedForAndSoManyAreReadAtOnce) {
  const TranslationProfile profile = translation_of(4096, 8, 2);
  TranslationCache cache(profile);
  EXPECT_EQ(cache.find(Time{}, {1, 0}), after(kMiss));
  EXPECT_EQ(cache.find(after(kMiss / 2), {1, 0}), after(kMiss));
  EXPECT_EQ(cache.find(Time{}, {1, 1}), after(kMiss));
  EXPECT_EQ(cache.find(Time{}, {1, 2}), after(2 * kMiss)) << "two at once";
  EXPECT_EQ(cache.misses(), 3U);
}

// Against lists in the order of use, one for each set; the sets are found by trying.
TEST(TranslationCache, ASetKeepsTheEntriesUsedLast) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kSets = 4;
  constexpr std::uint32_t kWays = 3;
  const TranslationProfile profile = translation_of(4096, kSets * kWays, kWays);
  TranslationCache cache(profile);
  std::array<std::list<std::uint64_t>, kSets> sets;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t number = random() % 24;
    std::list<std::uint64_t>& set = sets[number % kSets];
    const auto known = std::find(set.begin(), set.end(), number);
    const bool hit = known != set.end();
    if (hit) set.erase(known);
    set.push_front(number);
    if (set.size() > kWays) set.pop_back();
    const std::uint64_t before = cache.hits();
    cache.find(Time{}, {7, number});
    ASSERT_EQ(cache.hits() - before, hit ? 1U : 0U) << i;
  }
  EXPECT_GT(cache.hits(), 100U);
  EXPECT_GT(cache.misses(), 100U);
}

TEST(TranslationCache, WhatHasChangedIsReadAgain) {
  const TranslationProfile profile = translation_of(4096, 64, 64);
  TranslationCache cache(profile);
  for (const std::uint64_t table : {1, 2}) {
    for (std::uint64_t number = 0; number < 10; ++number) cache.find(Time{}, {table, number});
  }
  cache.forget(1, 3, 5);
  for (const std::uint64_t table : {1, 2}) {
    for (std::uint64_t number = 0; number < 10; ++number) {
      const std::uint64_t before = cache.misses();
      cache.find(Time{}, {table, number});
      EXPECT_EQ(cache.misses() - before, table == 1 && number >= 3 && number <= 5 ? 1U : 0U);
    }
  }
}

// --- on a NIC --------------------------------------------------------------------------------

struct Client {
  Thread& thread;
  pmem::Region& region;
  fabric::QueuePair& peer;
  RemoteKey key;

  fabric::LocalBuffer local(std::uint32_t length, Bytes offset = 0) const {
    return {&region, offset, length};
  }
  Task<> measure(fabric::Opcode opcode, LocalPieces pieces, Bytes at, Picoseconds* time) {
    const Time begin = thread.executor.now();
    const auto done = co_await fabric::RdmaOperation(
        peer, {.opcode = opcode, .local = pieces, .remote = {key, at}, .operand = 1});
    EXPECT_EQ(done.status, fabric::Status::success);
    *time = thread.executor.now() - begin;
  }
};

using Register = std::function<RemoteKey(Thread&, pmem::Region&)>;
using Body = std::function<Task<>(Client&)>;

// A server that has registered memory, and a client.
void with_server(const std::optional<TranslationProfile>& translation, Bytes size,
                 const Register& enlist, const Body& body) {
  Profile profile = perdura::test::erda_testbed();
  profile.translation = translation;
  SimPlatform platform(profile, 2);
  RemoteKey key;
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("target", size, pmem::Medium::pm);
    key = enlist(thread, *region);
    std::vector<std::unique_ptr<fabric::QueuePair>> peers;
    for (;;) peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
  });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("local", 64 * KiB, pmem::Medium::dram);
    auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    Client client{thread, *region, *connection.queue_pair, key};
    co_await body(client);
  });
  platform.run();
}

RemoteKey all_of_it(Thread& thread, pmem::Region& region) {
  return thread.endpoint.register_memory(region, Access::remote_all).key;
}

TEST(Translation, AnAccessThatMissesTakesLongerByTheMissAndOneThatHitsTakesAsLongAsWithout) {
  using fabric::Opcode;
  for (const Opcode opcode : {Opcode::read, Opcode::write, Opcode::fetch_and_add}) {
    const bool has_payload = opcode != Opcode::fetch_and_add;
    const auto times = [&](const std::optional<TranslationProfile>& translation) {
      std::vector<Picoseconds> all(4);
      with_server(translation, MiB, all_of_it, [&](Client& client) -> Task<> {
        const LocalPieces local = has_payload ? LocalPieces(client.local(8)) : LocalPieces();
        // The first also misses the client's own page.
        co_await client.measure(opcode, local, 0, &all[0]);
        co_await client.measure(opcode, local, 4096, &all[1]);
        co_await client.measure(opcode, local, 4096 + 64, &all[2]);
        co_await client.measure(opcode, local, 4096 * 3, &all[3]);
      });
      return all;
    };
    const auto without = times(std::nullopt);
    const auto with = times(translation_of(4096, 64, 4));
    EXPECT_EQ(with[0], without[0] + (has_payload ? 2 : 1) * kMiss) << to_string(opcode);
    EXPECT_EQ(with[1], without[1] + kMiss) << to_string(opcode);
    EXPECT_EQ(with[2], without[2]) << to_string(opcode);
    EXPECT_EQ(with[3], without[3] + kMiss) << to_string(opcode);
  }
}

// Figure 2.7 of the thesis: 8-byte WRITEs to random places of regions of different sizes.
TEST(Translation, LargerPagesMissLessAndALargerRegionMissesMore) {
  constexpr int kWrites = 400;
  const auto mean = [&](Bytes page, Bytes size) {
    Picoseconds sum{};
    with_server(translation_of(page, 64, 4), size, all_of_it, [&](Client& client) -> Task<> {
      std::mt19937_64 random(1);
      for (int i = 0; i < 2 * kWrites; ++i) {
        Picoseconds time{};
        const Bytes at = random() % (size / kWord) * kWord;
        co_await client.measure(fabric::Opcode::write, client.local(8), at, &time);
        if (i >= kWrites) sum += time;  // the cache is warm
      }
    });
    return sum / kWrites;
  };
  // 64 entries reach over 256 KiB in small pages, and over 128 MiB in huge ones.
  const Picoseconds hit = mean(4 * KiB, 64 * KiB);
  EXPECT_EQ(mean(2 * MiB, 64 * KiB), hit);
  EXPECT_EQ(mean(2 * MiB, 8 * MiB), hit);
  const Picoseconds half = mean(4 * KiB, 512 * KiB);
  EXPECT_GT(half, hit + kMiss / 4);
  EXPECT_LT(half, hit + kMiss * 3 / 4);
  EXPECT_GT(mean(4 * KiB, 8 * MiB), hit + kMiss * 9 / 10);
  // A range is one entry, whatever its length.
  EXPECT_EQ(mean(0, 8 * MiB), hit);
}

TEST(Translation, AFileThatIsFragmentedHasAnEntryForEachExtent) {
  constexpr Bytes kExtent = 64 * KiB;
  const auto enlist = [](Thread& thread, pmem::Region& region) {
    std::vector<Extent> extents;
    for (Bytes i = 0; i < 4; ++i) extents.push_back({i * kExtent, (6 - 2 * i) * kExtent, kExtent});
    return thread.endpoint.register_extents(region, extents, Access::remote_all).key;
  };
  std::vector<Picoseconds> times(6);
  with_server(translation_of(0, 64, 4), 8 * kExtent, enlist, [&](Client& client) -> Task<> {
    const auto read = [&](Bytes at, std::uint32_t length, Picoseconds& time) {
      return client.measure(fabric::Opcode::read, client.local(length), at, &time);
    };
    co_await read(0, 8, times[0]);
    co_await read(kExtent - 8, 8, times[1]);
    co_await read(kExtent - 4, 8, times[2]);  // in two extents, of which one is known
    co_await read(kExtent + 8000, 8, times[3]);
    co_await read(2 * kExtent - 4, 8, times[4]);
    co_await read(3 * kExtent - 4, 8, times[5]);
  });
  EXPECT_GT(times[2], times[1] + kMiss * 9 / 10);
  EXPECT_LT(times[3], times[2] - kMiss * 9 / 10);
  EXPECT_GT(times[4], times[3] + kMiss * 9 / 10);
  EXPECT_GT(times[5], times[3] + kMiss * 9 / 10);
}

// As many as the cache has entries: each is in the set of its first page, so none evicts another.
TEST(Translation, ExtentsOfWholePagesAreSpreadOverTheCache) {
  constexpr Bytes kExtents = 16;
  const auto enlist = [](Thread& thread, pmem::Region& region) {
    std::vector<Extent> extents;
    for (Bytes i = 0; i < kExtents; ++i) {
      extents.push_back({i * 4096, (kExtents - 1 - i) * 4096, 4096});
    }
    return thread.endpoint.register_extents(region, extents, Access::remote_all).key;
  };
  std::array<std::vector<Picoseconds>, 2> times;
  with_server(translation_of(0, kExtents, 1), MiB, enlist, [&](Client& client) -> Task<> {
    for (std::vector<Picoseconds>& round : times) {
      for (Bytes i = 0; i < kExtents; ++i) {
        co_await client.measure(fabric::Opcode::write, client.local(8), i * 4096,
                                &round.emplace_back());
      }
    }
  });
  for (Bytes i = 1; i < kExtents; ++i) EXPECT_LT(times[1][i], times[0][i] - kMiss * 9 / 10) << i;
}

constexpr Picoseconds kLater = Milliseconds(1);

Task<> change_later(Thread& thread, fabric::ExtentMap map) {
  co_await sleep_until(Time(kLater));
  co_await thread.endpoint.map_extent(map, {0, 65536, 4096});
}

TEST(Translation, AChangedRegistrationIsReadAgainAndTheRestIsStillKnown) {
  for (const Bytes page : {Bytes{4096}, Bytes{0}}) {
    const auto enlist = [](Thread& thread, pmem::Region& region) {
      const std::array extents{Extent{0, 0, 4096}, Extent{4096, 16384, 4096}};
      const auto map = thread.endpoint.register_extents(region, extents, Access::remote_all);
      thread.executor.spawn(change_later(thread, map));
      return map.key;
    };
    std::vector<Picoseconds> times(5);
    with_server(translation_of(page, 64, 4), MiB, enlist, [&](Client& client) -> Task<> {
      const auto read = [&](Bytes at, Picoseconds& time) {
        return client.measure(fabric::Opcode::read, client.local(8), at, &time);
      };
      co_await read(0, times[0]);
      co_await read(4096, times[0]);
      co_await read(0, times[1]);
      co_await read(4096, times[2]);
      co_await sleep_until(Time(2 * kLater));
      co_await read(4096, times[3]);
      co_await read(0, times[4]);
    });
    EXPECT_EQ(times[1], times[2]);
    // Nothing has changed there; ranges that adjoin might have become one.
    EXPECT_EQ(times[3], times[2] + (page == 0 ? kMiss : Picoseconds{}));
    EXPECT_EQ(times[4], times[1] + kMiss) << page;
  }
}

// The time that a thread of the server takes, by profile and what it does.
Picoseconds time_of(const TranslationProfile& translation,
                    const std::function<Task<>(Thread&, pmem::Region&)>& work) {
  Profile profile = perdura::test::erda_testbed();
  profile.translation = translation;
  SimPlatform platform(profile, 1);
  Picoseconds time{};
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("target", MiB, pmem::Medium::pm);
    co_await yield();
    const Time begin = thread.executor.now();
    co_await work(thread, *region);
    time = thread.executor.now() - begin;
  });
  platform.run();
  return time;
}

TEST(Translation, RegisteringTakesTimeForEachEntry) {
  TranslationProfile profile = translation_of(4096, 64, 4);
  profile.registration = Microseconds(3);
  profile.registration_entry = Microseconds(5);
  profile.change = Microseconds(2);
  const auto registers = [](Bytes offset, Bytes length) {
    return [=](Thread& thread, pmem::Region& region) -> Task<> {
      thread.endpoint.register_memory(region, offset, length, Access::remote_all);
      co_return;
    };
  };
  EXPECT_EQ(time_of(profile, registers(0, MiB)), Microseconds(3 + 256 * 5));
  EXPECT_EQ(time_of(profile, registers(4000, 200)), Microseconds(3 + 2 * 5));
  EXPECT_EQ(time_of(profile, registers(0, 0)), Microseconds(3));
  profile.page = 0;
  EXPECT_EQ(time_of(profile, registers(0, MiB)), Microseconds(3 + 5)) << "one range";
  const auto with_extents = [](Thread& thread, pmem::Region& region) -> Task<> {
    const std::array extents{Extent{0, 65536, 65536}, Extent{65536, 0, 65536}};
    thread.endpoint.deregister_memory(
        thread.endpoint.register_extents(region, extents, Access::remote_all));
    co_return;
  };
  EXPECT_EQ(time_of(profile, with_extents), Microseconds(3 + 2 * 5 + 2));
  profile.page = 4096;
  EXPECT_EQ(time_of(profile, with_extents), Microseconds(3 + 32 * 5 + 2));
  const auto changes = [](Thread& thread, pmem::Region& region) -> Task<> {
    const auto map = thread.endpoint.register_extents(region, {}, Access::remote_all);
    co_await thread.endpoint.map_extent(map, {0, 0, 8192});
    co_await thread.endpoint.unmap_extents(map, 0, 4096);
  };
  EXPECT_EQ(time_of(profile, changes), Microseconds(3 + (2 + 2 * 5) + 2));
}

}  // namespace
}  // namespace perdura::sim
