// Consistent hashing: shares are even, and only what must move moves.
#include "systems/mcas/cluster/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/seed.h"

namespace perdura::systems::mcas::cluster {
namespace {

constexpr int kKeys = 100'000;

std::span<const std::byte> as_key(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::vector<std::string> owners(const Ring& ring) {
  std::vector<std::string> all;
  for (int i = 0; i < kKeys; ++i) all.push_back(ring.owner(as_key("key " + std::to_string(i))));
  return all;
}
Ring ring_of(int members, const std::string& prefix) {
  Ring ring;
  for (int i = 0; i < members; ++i) ring.add(prefix + std::to_string(i));
  return ring;
}

// A member's share is a sum of kPoints gaps, each exponential about its mean. So its deviation is
// 1/sqrt(kPoints) of the mean or less; of all members here none may be off by more than five of
// these, to which the keys that are drawn add their own.
TEST(Ring, SharesAreEven) {
  for (const int members : {2, 3, 8, 20}) {
    for (const std::string prefix : {"", "s", "shard-number-", "host.example:"}) {
      SCOPED_TRACE(testing::Message() << members << " members, '" << prefix << "'");
      std::map<std::string, int> keys;
      for (const std::string& owner : owners(ring_of(members, prefix))) ++keys[owner];
      ASSERT_EQ(keys.size(), static_cast<std::size_t>(members));
      const double mean = static_cast<double>(kKeys) / members;
      const double bound = 5 * (mean / std::sqrt(Ring::kPoints) + std::sqrt(mean));
      for (const auto& [name, count] : keys) EXPECT_NEAR(count, mean, bound) << name;
    }
  }
}

TEST(Ring, OnlyKeysOfWhoJoinsOrLeavesMove) {
  for (int members = 1; members <= 12; ++members) {
    SCOPED_TRACE(testing::Message() << members << " members");
    Ring ring = ring_of(members, "m");
    const std::vector<std::string> before = owners(ring);
    ring.add("new");
    const std::vector<std::string> with = owners(ring);
    int moved = 0;
    for (int i = 0; i < kKeys; ++i) {
      const auto key = static_cast<std::size_t>(i);
      if (before[key] == with[key]) continue;
      ++moved;
      ASSERT_EQ(with[key], "new") << "key " << i << " was of " << before[key];
    }
    EXPECT_GT(moved, 0);
    ring.remove("new");
    EXPECT_EQ(owners(ring), before);
  }
}

// Clients that learn of members in any order, and more than once, agree.
TEST(Ring, DoesNotDependOnTheOrderOfMembers) {
  std::mt19937 random(perdura::test::random_seed());
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) names.push_back("member " + std::to_string(i));
  Ring expected;
  for (const std::string& name : names) expected.add(name);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(names.begin(), names.end(), random);
    Ring ring;
    ring.add("gone");
    for (const std::string& name : names) {
      ring.add(name);
      ring.add(name);
    }
    ring.remove("gone");
    ring.remove("never there");
    EXPECT_EQ(ring.members(), expected.members());
    EXPECT_EQ(owners(ring), owners(expected));
  }
}

TEST(Ring, OneMemberHasAllKeys) {
  Ring ring;
  EXPECT_TRUE(ring.empty());
  ring.add("alone");
  for (const std::string& owner : owners(ring)) ASSERT_EQ(owner, "alone");
}

}  // namespace
}  // namespace perdura::systems::mcas::cluster
