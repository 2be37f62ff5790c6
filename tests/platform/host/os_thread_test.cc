// Work that is shared out among threads.
#include "platform/host/os_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace perdura {
namespace {

TEST(SharedOut, EachPieceIsDoneOnce) {
  for (const std::size_t threads : {0, 1, 2, 7}) {
    for (const std::size_t count : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> done(count);
      share_out(threads, count, [&](std::size_t piece) { ++done[piece]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << threads << " " << count;
    }
  }
}

TEST(SharedOut, OneThreadTakesThePiecesInOrder) {
  std::vector<std::size_t> taken;
  share_out(1, 5, [&](std::size_t piece) { taken.push_back(piece); });
  EXPECT_EQ(taken, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

// With one thread nothing is begun after the piece that failed; with several, some others may be
// under way then.
TEST(SharedOut, AnExceptionEndsTheWorkAndIsThrown) {
  for (const std::size_t threads : {1, 2, 7}) {
    std::atomic<std::size_t> begun{0};
    const auto work = [&](std::size_t piece) {
      ++begun;
      if (piece == 3) throw std::runtime_error("piece 3");
    };
    EXPECT_THROW(share_out(threads, 1000, work), std::runtime_error);
    if (threads == 1) {
      EXPECT_EQ(begun, 4U);
    }
  }
}

}  // namespace
}  // namespace perdura
