// Each container behaves as a container of the standard library, over restarts, too.
#include <gtest/gtest.h>

#include <algorithm>

#include <random>

#include "tests/support/seed.h"
#include "tests/systems/mcas/containers/support.h"

namespace perdura::systems::mcas::containers {
namespace {

using namespace test;

// Transactions of one to three changes; some are taken back by an exception.
TEST(Containers, BehaveLikeAModelAndAreTheSameAfterARestart) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr ByteRange kRoom{192, 32 * KiB};
  PlainMemory memory(kRoom.end());
  format_in(memory.region(), kRoom, {.log = 4 * KiB, .roots = 128});
  Model model;
  int full = 0;
  std::size_t most = 0;  // entries of the map
  for (int restart = 0; restart < 20 && !HasFailure(); ++restart) {
    Containers all(memory.region(), kRoom);
    EXPECT_FALSE(all.arena.undone());
    for (int i = 0; i < 100 && !HasFailure(); ++i) {
      Model changed = model;
      const std::uint64_t changes = 1 + random() % 3;
      const bool fails = random() % 8 == 0;
      const auto transaction = [&] {
        return all.arena.transact([&] {
          for (std::uint64_t c = 0; c < changes; ++c) {
            change(all, changed, static_cast<unsigned>(random()), random(), random());
          }
          if (fails) throw std::runtime_error("taken back");
        });
      };
      if (fails) {
        EXPECT_THROW(transaction(), std::runtime_error);
      } else if (transaction()) {
        model = changed;
      } else {
        ++full;
      }
      most = std::max(most, model.squares.size());
      ASSERT_EQ(all.contents(), model) << all.contents().text() << "\n" << model.text();
      ASSERT_EQ(all.audit(), "");
    }
  }
  EXPECT_GT(most, 5U);
  EXPECT_EQ(full, 0) << "only a few changes a transaction, and lists of some dozen elements";
}

TEST(Containers, AVectorOfStringsKeepsNoneThatItHasDropped) {
  PlainMemory memory(Containers::kMemory);
  format_in(memory.region());
  Arena arena(Memory(memory.region(), Flushing::lines), Containers::kRange);
  Vector<std::string> names(arena, 0);
  const Bytes free = arena.free_bytes();
  EXPECT_TRUE(arena.transact([&] {
    for (int i = 0; i < 9; ++i) names.push_back(std::string(static_cast<std::size_t>(i * 5), 'x'));
    names.set(3, "another");
    names.pop_back();
  }));
  EXPECT_EQ(names.size(), 8U);
  EXPECT_EQ(names.get(3), "another");
  EXPECT_EQ(names.get(0), "");
  EXPECT_EQ(names.get(7), std::string(35, 'x'));
  EXPECT_EQ(arena.audit([&](auto visit) { names.visit_blocks(visit); }), "");
  EXPECT_TRUE(arena.transact([&] { names.clear(); }));
  EXPECT_EQ(arena.free_bytes(), free);
}

// Linear hashing: whatever the number of buckets, every key is found, and few are in one chain.
TEST(Containers, AMapGrowsByOneBucketAtATime) {
  constexpr ByteRange kRoom{0, 256 * KiB};
  PlainMemory memory(kRoom.end());
  // What one key adds is saved in a log of this size, however large the map is.
  format_in(memory.region(), kRoom, {.log = 1 * KiB, .roots = 64});
  Arena arena(Memory(memory.region(), Flushing::lines), kRoom);
  Map<std::uint64_t, std::uint64_t> squares(arena, 0);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(arena.transact([&] { squares.put(i, i * i); })) << i;
  }
  EXPECT_EQ(squares.audit(), "");
  for (std::uint64_t i = 0; i < 2000; ++i) EXPECT_EQ(squares.get(i), i * i);
  EXPECT_EQ(squares.get(2000), std::nullopt);
}

}  // namespace
}  // namespace perdura::systems::mcas::containers
