// Data stores that fail and come back (section 4.3.4): a group goes on without one of its stores, which
// then catches up from another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "systems/orion/store/journal.h"
#include "tests/systems/orion/group.h"

namespace perdura::systems::orion::test {
namespace {

TEST(OrionStores, AGroupGoesOnWithoutOneOfThem) {
  for (const NodeId failed : {kOne, kOther}) {
    Group group;
    group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
      co_await write_pages(session, file, 0, 10, 1);
      co_await group.power_fails(failed);
      co_await write_pages(session, file, 5, 10, 50);
      co_await expect_pages(group, thread, file, 0, 5, 1);
      co_await expect_pages(group, thread, file, 5, 10, 50);
    });
  }
}

// "A failed DS can recover by obtaining the pages committed during its downtime from a peer DS."
TEST(OrionStores, OneThatComesBackFetchesWhatItHasMissed) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 30, 1);
    co_await group.power_fails(kOne);
    co_await write_pages(session, file, 5, 4, 50);
    co_await group.comes_back(kOne);
    co_await group.until_caught_up(kOne);
    // It has all others.
    EXPECT_EQ(group.fetched(kOne), 4);
    co_await write_pages(session, file, 20, 2, 70);
    // Now there is only this store.
    co_await group.power_fails(kOther);
    co_await expect_pages(group, thread, file, 0, 5, 1);
    co_await expect_pages(group, thread, file, 5, 4, 50);
    co_await expect_pages(group, thread, file, 9, 11, 10);
    co_await expect_pages(group, thread, file, 20, 2, 70);
  });
}

TEST(OrionStores, OneThatMissedMoreThanTheJournalHoldsFetchesEverything) {
  Group group({{"journal_records", 16}});
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 30, 1);
    co_await group.power_fails(kOther);
    co_await write_pages(session, file, 0, 20, 50);
    co_await sleep_for(Milliseconds(200));  // pages that were replaced are free
    co_await group.comes_back(kOther);
    co_await group.until_caught_up(kOther);
    EXPECT_GE(group.fetched(kOther), 30);
    co_await group.power_fails(kOne);
    co_await expect_pages(group, thread, file, 0, 20, 50);
    co_await expect_pages(group, thread, file, 20, 10, 21);
  });
}

// A store that does not answer has failed, though its connection is open: others go on without it. When it
// goes on, it catches up.
TEST(OrionStores, OneThatHangsIsLost) {
  Group group(
      {{"store_timeout_us", std::uint64_t{2000}}, {"client_patience_us", std::uint64_t{50'000}}});
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 3, 1);
    group.hangs(kOther, Milliseconds(200));
    const Time begun = thread.executor.now();
    co_await write_pages(session, file, 3, 5, 4);
    EXPECT_LT(thread.executor.now() - begun, Milliseconds(10));
    co_await expect_pages(group, thread, file, 0, 8, 1);
    co_await group.until_caught_up(kOther, 0);
    co_await sleep_for(Milliseconds(200));
    co_await group.until_caught_up(kOther);
    co_await group.power_fails(kOne);
    co_await expect_pages(group, thread, file, 0, 8, 1);
  });
}

// A quick store is not taken for one that hangs, however short the time is.
TEST(OrionStores, OneThatAnswersIsNotLost) {
  Group group({{"store_timeout_us", std::uint64_t{200}}});
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    for (int i = 0; i < 40; ++i) {
      co_await write_pages(session, file, i % 5, 3, i);
      co_await sleep_for(Microseconds(100));
    }
    co_await group.power_fails(kOne);
    co_await expect_pages(group, thread, file, 4, 3, 39);
    co_await group.until_caught_up(kOther, 0);
  });
}

// "For NVMM media errors [...] Orion rebuilds the node using the data and metadata from other replicas."
TEST(OrionStores, OneWhoseMemoryWasReplacedIsRebuilt) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 30, 1);
    co_await group.power_fails(kOne);
    group.replace_memory(kOne);
    co_await group.comes_back(kOne);
    co_await group.until_caught_up(kOne);
    EXPECT_GE(group.fetched(kOne), 30);
    co_await group.power_fails(kOther);
    co_await expect_pages(group, thread, file, 0, 30, 1);
  });
}

TEST(OrionStores, OneThatMissedPagesServesNothingAlone) {
  Group group;
  group.run([&](Thread& thread) -> Task<> {
    const auto files = co_await group.mount(thread);
    auto session = files->attach(thread);
    const InodeNumber file = co_await make_file(*session);
    co_await write_pages(*session, file, 0, 4, 1);
    co_await group.power_fails(kOne);
    co_await write_pages(*session, file, 0, 4, 50);
    co_await group.power_fails(kOther);
    co_await group.comes_back(kOne);
    {
      const auto late = co_await group.mount(thread);
      const auto reader = late->attach(thread);
      std::vector<std::byte> found(kPage);
      const auto read = co_await reader->read(file, 0, found);
      EXPECT_TRUE(!read && read.error() == std::errc::not_connected);
    }
    // It waits for the one that has them.
    co_await group.comes_back(kOther);
    co_await group.until_caught_up(kOne);
    EXPECT_GE(group.fetched(kOne), 4);
    co_await expect_pages(group, thread, file, 0, 4, 50);
  });
}

// Nobody fetches a page that the journal lacks.
TEST(OrionStores, WhatWasAcknowledgedIsInTheJournalAfterAPowerFailure) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 10, 1);
    co_await group.power_fails(kOne);
    co_await write_pages(session, file, 0, 1, 50);
    co_await group.power_fails(kOther);
    co_await group.comes_back(kOther);
    co_await group.comes_back(kOne);
    co_await group.until_caught_up(kOne);
    EXPECT_EQ(group.fetched(kOne), 1);
    co_await group.power_fails(kOther);
    co_await expect_pages(group, thread, file, 0, 1, 50);
    co_await expect_pages(group, thread, file, 1, 9, 2);
  });
}

TEST(OrionStores, WritesGoOnWhileOneCatchesUp) {
  Group group;
  group.run_with_file([&](Thread& thread, fs::Session& session, InodeNumber file) -> Task<> {
    co_await write_pages(session, file, 0, 100, 1);
    co_await group.power_fails(kOne);
    group.replace_memory(kOne);
    co_await group.comes_back(kOne);
    for (int round = 0; round < 20; ++round) {
      co_await write_pages(session, file, round * 5, 5, round + 100);
    }
    co_await group.until_caught_up(kOne);
    co_await group.power_fails(kOther);
    for (int round = 0; round < 20; ++round) {
      co_await expect_pages(group, thread, file, round * 5, 5, round + 100);
    }
  });
}

// --- the journal

std::vector<JournalRecord> copy_of(Journal& journal, std::size_t records) {
  std::vector<JournalRecord> copy(records);
  journal.region().read(0, std::as_writable_bytes(std::span(copy)));
  return copy;
}

using Numbers = std::vector<std::uint32_t>;

TEST(OrionJournal, HasThePagesOfEachEpochUntilItWraps) {
  constexpr std::uint64_t kRecords = 16;
  sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Journal::make(thread.node, "files", kRecords);
    Journal first(thread.node, "files", kRecords);
    first.add_epoch(3, true);
    first.add_page(7);
    first.add_page(9);
    first.add_epoch(5, true);
    first.add_page(7);
    first.add_epoch(6, true);
    first.add_page(4);
    EXPECT_EQ(pages_since(copy_of(first, kRecords), 6), Numbers{});
    EXPECT_EQ(pages_since(copy_of(first, kRecords), 5), Numbers{4});
    EXPECT_EQ(pages_since(copy_of(first, kRecords), 4), (Numbers{4, 7}));
    EXPECT_EQ(pages_since(copy_of(first, kRecords), 0), (Numbers{4, 7, 9}));
    first.region().drain();
    // After a restart it goes on after its last record.
    Journal again(thread.node, "files", kRecords);
    Numbers expected{4};
    for (std::uint32_t page = 20; page < 31; ++page) {
      again.add_page(page);
      expected.push_back(page);
    }
    EXPECT_EQ(pages_since(copy_of(again, kRecords), 5), expected);
    // The journal has gone around since then.
    EXPECT_EQ(pages_since(copy_of(again, kRecords), 2), std::nullopt);
    co_return;
  });
  platform.run();
}

TEST(OrionJournal, OfAStoreThatCaughtUpDoesNotGoBackBeforeThat) {
  constexpr std::uint64_t kRecords = 64;
  sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
  platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Journal::make(thread.node, "files", kRecords);
    Journal journal(thread.node, "files", kRecords);
    journal.add_epoch(3, true);
    journal.add_page(7);
    journal.add_epoch(6, false);
    journal.add_page(9);
    journal.add_epoch(7, true);
    journal.add_page(2);
    EXPECT_EQ(pages_since(copy_of(journal, kRecords), 6), Numbers{2});
    EXPECT_EQ(pages_since(copy_of(journal, kRecords), 5), std::nullopt);
    EXPECT_EQ(pages_since(copy_of(journal, kRecords), 3), std::nullopt);
    co_return;
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::systems::orion::test
