// The pages that the MDS manages, and the delegation of chunks (section 4.3.1): a page is never given
// to two sessions, and none is lost.
#include "systems/orion/mds/pages.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "systems/orion/client/own_pages.h"
#include "tests/support/seed.h"

namespace perdura::systems::orion::test {
namespace {

constexpr std::uint64_t kPages = 64;
constexpr std::uint64_t kChunk = 8;

Reply reply_of(const Chunk& chunk) {
  Reply reply;
  reply.value = chunk.first;
  reply.count = chunk.count;
  std::copy(chunk.free.begin(), chunk.free.end(), std::begin(reply.free));
  return reply;
}

bool claims(Pages& pages, SessionNumber session, std::uint64_t gpa) {
  return pages.claim(session, gpa, std::nullopt) == Pages::Claimed::yes;
}

TEST(OrionPages, AreDelegatedOnce) {
  Pages pages(2, kPages, kChunk);
  std::set<std::uint64_t> given;
  for (SessionNumber session = 0;; ++session) {
    const auto chunk = pages.take(session, session % 2, 0);
    if (!chunk) break;
    for (std::uint32_t i = 0; i < chunk->count; ++i) {
      if ((chunk->free[i / 64] >> i % 64 & 1) == 0) continue;
      EXPECT_TRUE(given.insert(chunk->first + i).second) << "page given twice";
      EXPECT_FALSE(claims(pages, session + 1, chunk->first + i)) << "claimed by somebody else";
    }
  }
  // Page 0 of a group is the header of its stores.
  EXPECT_EQ(given.size(), 2 * (kPages - 1));
  EXPECT_FALSE(given.contains(gpa_of(0, 0)));
}

// Sessions take, use, free and give back pages at random. What each believes to own is its own.
TEST(OrionPages, AreNeitherLostNorUsedTwice) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  constexpr SessionNumber kSessions = 3;
  Pages pages(1, kPages, kChunk);
  std::vector<OwnPages> own(kSessions);
  std::set<std::uint64_t> used;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !used.empty()) {
      auto page = used.begin();
      std::advance(page, random() % used.size());
      pages.free(*page, 1);
      used.erase(page);
      continue;
    }
    const SessionNumber session = random() % kSessions;
    const OwnPages::Use use(own[session]);
    nova::Extent taken = own[session].take(1 + random() % 3);
    for (std::uint64_t number = 0; taken.count == 0; ++number) {
      for (const std::uint64_t first : own[session].used_up()) pages.give_back(session, first);
      const auto chunk = pages.take(session, 0, number);
      if (!chunk) break;
      if (own[session].add(reply_of(*chunk))) taken = own[session].take(1 + random() % 3);
    }
    if (taken.count == 0) {
      ++refused;
      continue;
    }
    if (random() % 10 == 0) {
      own[session].give(taken);
      continue;
    }
    for (std::uint64_t page = taken.first; page < taken.first + taken.count; ++page) {
      ASSERT_TRUE(claims(pages, session, page)) << "it does not have this page: " << page;
      ASSERT_TRUE(used.insert(page).second) << "used twice: " << page;
    }
    own[session].settle(taken);
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(pages.free_count(), kPages - 1 - used.size());
  // When all sessions have ended, everything that is free can be had.
  for (SessionNumber session = 0; session < kSessions; ++session) pages.give_back(session);
  std::uint64_t free = 0;
  while (const auto chunk = pages.take(kSessions, 0, 0)) {
    if (pages.free_count() == 0) break;
    OwnPages all;
    if (!all.add(reply_of(*chunk))) break;
    for (nova::Extent taken = all.take(1); taken.count > 0; taken = all.take(1)) {
      ASSERT_TRUE(claims(pages, kSessions, taken.first));
      ++free;
    }
  }
  EXPECT_EQ(free + used.size(), kPages - 1);
}

}  // namespace
}  // namespace perdura::systems::orion::test
