// Litmus tests: which images may a power failure leave after a few stores, flushes and fences?
#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "platform/sim/node.h"
#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

constexpr PersistenceModel kDmp{PersistenceDomain::dmp, false};
constexpr PersistenceModel kMhp{PersistenceDomain::mhp, true};
constexpr PersistenceModel kWsp{PersistenceDomain::wsp, true};

// A program that does not suspend.
Program steps(std::function<void(Region&)> what) {
  return [what = std::move(what)](Thread&, Region& pool) -> Task<> {
    what(pool);
    co_return;
  };
}

Found after(PersistenceModel model, std::function<void(Region&)> what, std::vector<Bytes> words) {
  return all_images(model, {steps(std::move(what))}, words);
}

constexpr Bytes at_word(Bytes word) { return word * kWord; }
constexpr Bytes kOtherLine = kCacheLine / kWord;

TEST(PowerFailure, AnUnflushedStoreMayBeLostOrEvicted) {
  const Found found = after(kDmp, [](Region& pool) { pool.store(0, 1); }, {0});
  EXPECT_EQ(found.images, (std::set<Image>{{0}, {1}}));
  EXPECT_EQ(found.sequences, 2U);
}

TEST(PowerFailure, AFlushedAndFencedStoreIsThere) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(0, 1);
                              pool.persist(0, kWord);
                            },
                            {0});
  EXPECT_EQ(found.images, (std::set<Image>{{1}}));
  EXPECT_EQ(found.sequences, 1U) << "there is nothing to choose";
}

TEST(PowerFailure, AFlushWithoutAFenceGuaranteesNothing) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(0, 1);
                              pool.flush(0, kWord);
                            },
                            {0});
  EXPECT_EQ(found.images, (std::set<Image>{{0}, {1}}));
}

TEST(PowerFailure, AFenceWithoutAFlushGuaranteesNothing) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(0, 1);
                              pool.drain();
                            },
                            {0});
  EXPECT_EQ(found.images, (std::set<Image>{{0}, {1}}));
}

TEST(PowerFailure, AStoreBetweenFlushAndFenceIsNotCovered) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(0, 1);
                              pool.flush(0, kWord);
                              pool.store(0, 2);
                              pool.drain();
                            },
                            {0});
  EXPECT_EQ(found.images, (std::set<Image>{{1}, {2}}));
}

TEST(PowerFailure, AnotherThreadsFenceIsForItsOwnFlushes) {
  const auto flushes = [](Thread&, Region& pool) -> Task<> {
    pool.store(0, 1);
    pool.flush(0, kWord);
    co_return;
  };
  const auto fences = [](Thread&, Region& pool) -> Task<> {
    co_await sleep_for(Microseconds(10));
    pool.drain();
  };
  EXPECT_EQ(all_images(kDmp, {flushes, fences}, {0}).images, (std::set<Image>{{0}, {1}}));
  const auto both = [](Thread&, Region& pool) -> Task<> {
    co_await sleep_for(Microseconds(10));
    pool.persist(0, kWord);
  };
  EXPECT_EQ(all_images(kDmp, {flushes, both}, {0}).images, (std::set<Image>{{1}}));
}

TEST(PowerFailure, OfALineAPrefixOfItsStoresSurvives) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(at_word(2), 1);
                              pool.store(at_word(0), 2);
                              pool.store(at_word(2), 3);
                              pool.store(at_word(1), 4);
                            },
                            {0, 1, 2});
  EXPECT_EQ(found.images, (std::set<Image>{{0, 0, 0}, {0, 0, 1}, {2, 0, 1}, {2, 0, 3}, {2, 4, 3}}));
  EXPECT_EQ(found.sequences, 5U);
}

TEST(PowerFailure, TheFlushedPartOfALineIsAPrefixThatIsThere) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(at_word(0), 1);
                              pool.store(at_word(1), 2);
                              pool.persist(at_word(1), kWord);  // the whole line
                              pool.store(at_word(2), 3);
                              pool.store(at_word(3), 4);
                            },
                            {0, 1, 2, 3});
  EXPECT_EQ(found.images, (std::set<Image>{{1, 2, 0, 0}, {1, 2, 3, 0}, {1, 2, 3, 4}}));
}

TEST(PowerFailure, LinesAreIndependentOfEachOther) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              pool.store(at_word(0), 1);
                              pool.store(at_word(kOtherLine), 2);
                              pool.store(at_word(2 * kOtherLine), 3);
                            },
                            {0, kOtherLine, 2 * kOtherLine});
  EXPECT_EQ(found.images.size(), 8U);
  EXPECT_EQ(found.sequences, 8U);
}

// How a copy is done is the compiler's and the CPU's matter.
TEST(PowerFailure, OfAWriteAnyWordSurvives) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              const std::array<std::uint64_t, 4> values{1, 2, 3, 4};
                              pool.write(at_word(kOtherLine - 2), std::as_bytes(std::span(values)));
                            },
                            {kOtherLine - 2, kOtherLine - 1, kOtherLine, kOtherLine + 1});
  EXPECT_EQ(found.images.size(), 16U);
}

TEST(PowerFailure, UnalignedBytesAreSplitAtWords) {
  const Found found =
      after(kDmp,
            [](Region& pool) {
              const std::array<std::byte, 6> ones{std::byte{1}, std::byte{1}, std::byte{1},
                                                  std::byte{1}, std::byte{1}, std::byte{1}};
              pool.write(5, ones);
            },
            {0, 1});
  constexpr std::uint64_t kFirst = 0x0101010000000000;
  EXPECT_EQ(found.images,
            (std::set<Image>{{0, 0}, {kFirst, 0}, {0, 0x010101}, {kFirst, 0x010101}}));
}

TEST(PowerFailure, OfNonTemporalStoresAnyWordSurvivesUntilTheFence) {
  const std::array<std::uint64_t, 2> values{1, 2};
  const auto stream = [values](Region& pool) {
    pool.write_streaming(0, std::as_bytes(std::span(values)));
  };
  const auto fenced = [stream](Region& pool) {
    stream(pool);
    pool.drain();
  };
  const std::set<Image> any{{0, 0}, {1, 0}, {0, 2}, {1, 2}};
  EXPECT_EQ(after(kDmp, stream, {0, 1}).images, any);
  EXPECT_EQ(after(kMhp, stream, {0, 1}).images, any) << "write-combining buffers are not caches";
  EXPECT_EQ(after(kWsp, stream, {0, 1}).images, any) << "nor does a battery reach them";
  EXPECT_EQ(after(kDmp, fenced, {0, 1}).images, (std::set<Image>{{1, 2}}));
  EXPECT_EQ(after(kMhp, fenced, {0, 1}).images, (std::set<Image>{{1, 2}}));
}

TEST(PowerFailure, AFlushIsNotAFenceForNonTemporalStores) {
  const Found found = after(kDmp,
                            [](Region& pool) {
                              const std::uint64_t value = 1;
                              pool.write_streaming(0, std::as_bytes(std::span(&value, 1)));
                              pool.flush(0, kWord);
                            },
                            {0});
  EXPECT_EQ(found.images, (std::set<Image>{{0}, {1}}));
}

TEST(PowerFailure, WithPersistentCachesVisibleIsDurable) {
  const auto stores = [](Region& pool) {
    pool.store(at_word(0), 1);
    pool.store(at_word(kOtherLine), 2);
  };
  for (const PersistenceModel model : {kMhp, kWsp}) {
    EXPECT_EQ(after(model, stores, {0, kOtherLine}).images, (std::set<Image>{{1, 2}}));
  }
}

// A task's stores are made at once, but lie ahead of the moment at which it runs.
TEST(PowerFailure, WhatIsNotYetVisibleHasNotHappened) {
  const Program program = [](Thread&, Region& pool) -> Task<> {
    pool.store(at_word(0), 1);
    charge(Work::crc32, 100'000);  // some 35 us
    pool.store(at_word(0), 2);
    pool.persist(0, kWord);
    co_return;
  };
  pmem::MostChoices most;
  pmem::LeastChoices least;
  const Time between = Time(Microseconds(20));
  EXPECT_EQ(run_and_fail(kMhp, {program}, {0}, most, between), Image{1});
  EXPECT_EQ(run_and_fail(kMhp, {program}, {0}, least, between), Image{1});
  EXPECT_EQ(run_and_fail(kDmp, {program}, {0}, most, between), Image{1});
  EXPECT_EQ(run_and_fail(kDmp, {program}, {0}, least, between), Image{0});
  EXPECT_EQ(run_and_fail(kDmp, {program}, {0}, least, Time(Milliseconds(1))), Image{2});
}

TEST(PowerFailure, TheJournalStaysAsSmallAsWhatIsUnderWay) {
  SimPlatform platform(testbed(), 1);
  platform.track_durability(kDmp);
  const auto pool = platform.local_node(0)->create_region("pool", 4 * MiB, pmem::Medium::pm);
  auto& node = static_cast<SimNode&>(*platform.local_node(0));
  std::size_t largest = 0;
  platform.start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
    for (Bytes line = 0; line < pool->size() / kCacheLine; ++line) {
      pool->store(line * kCacheLine, line);
      pool->persist(line * kCacheLine, kWord);
      co_await yield();
      largest = std::max(largest, node.journal()->lines());
    }
  });
  platform.run();
  EXPECT_LE(largest, 2048U) << "of " << pool->size() / kCacheLine << " lines written";
}

TEST(PowerFailure, TakesConnectionsRegistrationsAndMemoryWithIt) {
  SimPlatform platform(testbed(), 2);
  platform.track_durability(kMhp);
  std::vector<fabric::RemoteKey> keys;
  const auto server = [&](Thread& thread) -> Task<> {
    auto pool = thread.node.open_region("pool");
    if (pool == nullptr) pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
    const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::remote_all);
    keys.push_back(memory.key);
    const auto request = co_await thread.endpoint.next_connection();
    const auto client = request->accept({}, {});
    co_await sleep_for(std::chrono::seconds(10));
  };
  platform.start_service(0, 0, CompletionMode::polling, server);
  pmem::LeastChoices least;
  platform.at(Time(Milliseconds(1)), [&] {
    platform.fail_power(0, least);
    platform.start_service(0, 0, CompletionMode::polling, server);
  });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("local", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    auto first = co_await thread.endpoint.connect({0, 0}, {}, {});
    region->store(0, 77);
    EXPECT_TRUE(co_await first.queue_pair->write(memory.local(0, kWord), {keys[0], 0}));
    EXPECT_TRUE(co_await first.queue_pair->read(memory.local(kWord, kWord), {keys[0], 0}));
    co_await sleep_for(Milliseconds(2));
    EXPECT_FALSE(first.queue_pair->connected());
    const auto second = co_await thread.endpoint.connect({0, 0}, {}, {});
    EXPECT_EQ(keys.size(), 2U);
    EXPECT_TRUE(co_await second.queue_pair->read(memory.local(kWord, kWord), {keys[1], 0}));
    EXPECT_EQ(region->load(kWord), 77U);
    EXPECT_EQ((co_await second.queue_pair->read(memory.local(0, kWord), {keys[0], 0})).status,
              fabric::Status::remote_access_error);
  });
  platform.run();
}

TEST(PowerFailure, MustBeAskedForBeforeTheRun) {
  SimPlatform platform(testbed(), 1);
  pmem::LeastChoices least;
  EXPECT_THROW(platform.fail_power(0, least), UsageError);
}

// In whichever order the two are asked for.
TEST(PowerFailure, IsRefusedWhereTimesDecideNothing) {
  const auto refused = [](const std::function<void()>& ask) {
    try {
      ask();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  pmem::RandomChoices choices(1);
  SimPlatform tracked(testbed(), 1);
  tracked.track_durability(kDmp);
  const std::string why = refused([&] { tracked.relax(choices); });
  EXPECT_NE(why.find("cannot be relaxed and track durability"), std::string::npos) << why;
  SimPlatform relaxed(testbed(), 1);
  relaxed.relax(choices);
  EXPECT_EQ(refused([&] { relaxed.track_durability(kDmp); }), why);
}

}  // namespace
}  // namespace perdura::sim::test
