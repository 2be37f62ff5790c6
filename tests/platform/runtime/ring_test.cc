#include "platform/runtime/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace perdura {
namespace {

TEST(Ring, DoesWhatADequeDoes) {
  std::mt19937 random(1);
  Ring<int> ring;
  std::deque<int> deque;
  for (int i = 0; i < 100000; ++i) {
    const unsigned what = random() % 100;
    // Longer and shorter, so that it grows while it is wrapped around.
    if (what < (i % 2000 < 1000 ? 60U : 40U)) {
      ring.push_back(i);
      deque.push_back(i);
    } else if (what < 90 && !deque.empty()) {
      ASSERT_EQ(ring.take_front(), deque.front());
      deque.pop_front();
    } else if (what < 99 && !deque.empty()) {
      // One that is there, or one that no longer is.
      const int element = deque[random() % deque.size()] - static_cast<int>(random() % 2);
      ring.erase(element);
      if (const auto found = std::find(deque.begin(), deque.end(), element); found != deque.end()) {
        deque.erase(found);
      }
    } else if (random() % 20 == 0) {
      ring.clear();
      deque.clear();
    }
    ASSERT_EQ(ring.size(), deque.size());
    ASSERT_EQ(ring.empty(), deque.empty());
    for (std::size_t k = 0; k < deque.size(); k += 1 + k / 4) ASSERT_EQ(ring[k], deque[k]);
  }
}

}  // namespace
}  // namespace perdura
