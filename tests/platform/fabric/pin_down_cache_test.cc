// The pin-down cache, against lists of the entries of each set in the order of their use.
#include "platform/fabric/translation/pin_down_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "tests/support/seed.h"

namespace perdura::fabric {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;

// Sets are found from outside: two entries are in the same set if one evicts the other from a cache
// of that many sets and one way.
bool share_a_set(std::uint32_t sets, TranslationId one, TranslationId other) {
  PinDownCache cache(sets, 1);
  cache.access(one);
  cache.access(other);
  return !cache.access(one).hit;
}

class CacheOracle {
 public:
  CacheOracle(std::uint32_t entries, std::uint32_t ways) : sets_(entries / ways), ways_(ways) {}
  bool access(Key key) {
    std::list<Key>& set = lists_[set_of(key)];
    const auto known = std::find(set.begin(), set.end(), key);
    const bool hit = known != set.end();
    if (hit) set.erase(known);
    set.push_front(key);
    if (set.size() > ways_) set.pop_back();
    return hit;
  }
  template <class Matches>
  void forget(Matches matches) {
    for (auto& [number, set] : lists_) set.remove_if(matches);
  }
  std::size_t used_sets() const { return lists_.size(); }

 private:
  std::uint64_t set_of(Key key) {
    const TranslationId id{key.first, key.second};
    for (std::uint64_t set = 0; set < first_.size(); ++set) {
      if (first_[set] == id || share_a_set(sets_, first_[set], id)) return set;
    }
    first_.push_back(id);
    return first_.size() - 1;
  }

  std::uint32_t sets_;
  std::uint32_t ways_;
  std::vector<TranslationId> first_;  // an entry of each set that was met
  std::map<std::uint64_t, std::list<Key>> lists_;
};

TEST(PinDownCache, HitsAreThoseOfSetsThatEvictWhatWasUsedLeastRecently) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const auto ways = static_cast<std::uint32_t>(1 + random() % 5);
    const auto sets = static_cast<std::uint32_t>(1 + random() % 7);
    PinDownCache cache(sets * ways, ways);
    CacheOracle oracle(sets * ways, ways);
    std::uint64_t hits = 0;
    const std::uint64_t numbers = 1 + random() % (2 * sets * ways);
    for (int i = 0; i < 2000; ++i) {
      const Key key{random() % 3, random() % numbers};
      switch (random() % 40) {
        case 0:
          cache.forget({key.first, key.second});
          oracle.forget([&](const Key& each) { return each == key; });
          break;
        case 1:
          cache.forget(key.first, key.second, key.second + 3);
          oracle.forget([&](const Key& each) {
            return each.first == key.first && each.second >= key.second &&
                   each.second <= key.second + 3;
          });
          break;
        case 2:
          cache.forget_table(key.first);
          oracle.forget([&](const Key& each) { return each.first == key.first; });
          break;
        default: {
          const bool hit = oracle.access(key);
          const PinDownCache::Access access = cache.access({key.first, key.second});
          ASSERT_EQ(access.hit, hit) << round << ", " << i;
          ASSERT_LT(access.slot, cache.entries());
          hits += hit ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(cache.hits(), hits);
    EXPECT_LE(oracle.used_sets(), sets);
  }
}

TEST(PinDownCache, ConsecutivePagesAreInConsecutiveSets) {
  constexpr std::uint32_t kSets = 16;
  for (const std::uint64_t table : {1, 7, 1000}) {
    PinDownCache cache(kSets, 1);
    std::set<std::size_t> slots;
    for (std::uint64_t page = 100; page < 100 + kSets; ++page) {
      slots.insert(cache.access({table, page}).slot);
    }
    EXPECT_EQ(slots.size(), kSets);
  }
}

TEST(PinDownCache, RangesOfWholePagesAreInTheSetsOfTheirPages) {
  constexpr std::uint32_t kSets = 16;
  PinDownCache pages(kSets, 1);
  PinDownCache ranges(kSets, 1);
  for (std::uint64_t page = 0; page < 3 * kSets; ++page) {
    EXPECT_EQ(pages.access({5, page}).slot,
              ranges.access(TranslationId::of_range(5, page * 4096)).slot);
  }
  EXPECT_NE(TranslationId::of_range(5, 4096), TranslationId::of_range(5, 4097));
}

}  // namespace
}  // namespace perdura::fabric
