// When a thread spins before it sleeps.
#include "platform/host/spinning.h"

#include <gtest/gtest.h>

namespace perdura::host {
namespace {

// How many of the next times a thread spins that never finds anything.
int spins_of(Spinning& spinning, int times) {
  int spins = 0;
  for (int i = 0; i < times; ++i) {
    if (spinning.turns() == Spinning::kLong) ++spins;
    spinning.found_none();
  }
  return spins;
}

TEST(Spinning, IsRareWhereItIsInVain) {
  Spinning spinning;
  EXPECT_EQ(spinning.turns(), Spinning::kLong);
  spins_of(spinning, 100);
  EXPECT_EQ(spins_of(spinning, 320), 10);
}

TEST(Spinning, IsUsualFromTheFirstSuccessOn) {
  Spinning spinning;
  spins_of(spinning, 100);
  while (spinning.turns() != Spinning::kLong) spinning.found_none();
  spinning.found_work(Spinning::kLong / 2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(spinning.turns(), Spinning::kLong);
    spinning.found_work(Spinning::kLong / 2);
  }
}

// Work that would have been there anyway says nothing about spinning.
TEST(Spinning, IsNotEncouragedByWorkThatComesAtOnce) {
  Spinning spinning;
  spins_of(spinning, 100);
  for (int i = 0; i < 320; ++i) {
    spinning.found_work(Spinning::kShort);
    spinning.found_none();
  }
  EXPECT_EQ(spins_of(spinning, 320), 10);
}

}  // namespace
}  // namespace perdura::host
