// Whatever store a crash follows, and whichever unflushed words it takes away: recovery finds every
// key that was in the table, once, and no other.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "systems/hopscotch/table.h"
#include "tests/support/seed.h"
#include "tests/systems/hopscotch/crash_memory.h"

namespace perdura::systems::hopscotch {
namespace {

using test::as_key;
using test::CrashRegion;
using test::Image;
using Contents = std::map<std::string, std::uint64_t>;

const Geometry kGeometry{16, 4, 24};

std::string numbered_key(std::uint64_t number) {
  std::string key = "key" + std::to_string(number);
  key.resize(number % 3 == 0 ? 30 : number % 3 == 1 ? 16 : 11, '-');
  return key;
}
// The table holds `before`, or `after`: the operation under way may have taken effect.
void expect_either(const Image& image, const Contents& before, const Contents& after) {
  CrashRegion crashed(image);
  Table table(crashed.region, 0, kGeometry);
  table.recover();
  std::uint64_t entries = 0;
  table.for_each([&](const Entry&, Key) { ++entries; });
  const auto holds = [&](const Contents& contents) {
    if (entries != contents.size()) return false;
    for (const auto& [key, word] : contents) {
      const std::optional<Entry> found = table.find(as_key(key));
      if (!found || found->word != word) return false;
    }
    return true;
  };
  ASSERT_TRUE(holds(before) || holds(after)) << entries << " entries after recovery";
  EXPECT_EQ(table.recover(), 0u);
}

TEST(HopscotchCrash, LosesAndDuplicatesNothing) {
  const std::uint64_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  CrashRegion live(Image(kGeometry.size()));
  Table table(live.region, 0, kGeometry);
  Contents before;
  Contents after;
  std::uint64_t crashes = 0;
  live.memory->after_store = [&] {
    expect_either(live.memory->visible, before, after);
    expect_either(live.memory->durable, before, after);
    for (int i = 0; i < 3; ++i) expect_either(live.memory->possible_image(random), before, after);
    crashes += 5;
  };

  std::uint64_t refused = 0;
  for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
    const std::string key = numbered_key(random() % 40);
    const std::optional<Entry> found = table.find(as_key(key));
    if (!found) {
      after[key] = random() | 1;
      if (!table.insert(as_key(key), static_cast<std::uint8_t>(random()), after[key])) {
        ++refused;
        after = before;
      }
    } else if (random() % 4 == 0) {
      after.erase(key);
      table.clear(found->bucket);
    } else {
      after[key] = random() | 1;
      table.set_word(found->bucket, after[key]);
    }
    before = after;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(crashes, 5000u);
}

}  // namespace
}  // namespace perdura::systems::hopscotch
