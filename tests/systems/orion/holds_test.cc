// What a mount knows of the inodes that it holds, while some of its sessions connect to the MDS again and
// others go on.
#include "systems/orion/client/holds.h"

#include <gtest/gtest.h>

namespace perdura::systems::orion {
namespace {

constexpr fs::InodeNumber kHeld{7};

void hold_it(Holds& holds, std::uint64_t generation) {
  ASSERT_EQ(holds.add(kHeld), Holds::Outcome::first);
  holds.told(kHeld, true, generation);
}

TEST(OrionHolds, AnInodeThatIsGoneAfterAFailureIsNotItsSuccessor) {
  Holds holds;
  hold_it(holds, 1);
  for (const Holds::One& one : holds.all(1)) holds.lose(one);
  EXPECT_TRUE(holds.is_lost(kHeld));
  const fs::InodeNumber successor = holds.identity(number_of(kHeld));
  EXPECT_NE(successor, kHeld);
  EXPECT_FALSE(holds.is_lost(successor));
  EXPECT_FALSE(holds.remove(kHeld, 1)) << "the MDS does not know of it";
}

// One session asks for what was held when it connected. Another one gives the inode up in the meantime, and
// creates a file that gets its number.
TEST(OrionHolds, AnInodeThatIsHeldAnewIsNotLostWithTheOneBefore) {
  Holds holds;
  hold_it(holds, 1);
  const std::vector<Holds::One> asked = holds.all(1);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_FALSE(holds.is_given_up(asked[0]));
  EXPECT_TRUE(holds.remove(kHeld, 1));
  EXPECT_TRUE(holds.is_given_up(asked[0]));
  hold_it(holds, 2);
  EXPECT_TRUE(holds.is_given_up(asked[0]));
  holds.lose(asked[0]);
  EXPECT_FALSE(holds.is_lost(kHeld));
  EXPECT_TRUE(holds.remove(kHeld, 1));
}

}  // namespace
}  // namespace perdura::systems::orion
