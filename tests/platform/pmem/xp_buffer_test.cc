#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "platform/pmem/accounting.h"

namespace perdura::pmem {
namespace {

// What the buffer promises, in the plainest form: media lines, the most recently written one first.
class PlainBuffer {
 public:
  int write(std::uint64_t address) {
    const std::uint64_t line = address / kMediaLine;
    const auto found = std::find(lines_.begin(), lines_.end(), line);
    const bool full = lines_.size() == XpBuffer::kLines;
    int evicted = 0;
    if (found != lines_.end()) {
      lines_.erase(found);
    } else if (full) {
      lines_.pop_back();
      evicted = 1;
    }
    lines_.push_front(line);
    return evicted;
  }

 private:
  std::list<std::uint64_t> lines_;
};

TEST(XpBuffer, CombinesTheLinesOfAMediaLine) {
  XpBuffer buffer;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t line = 0; line < 4; ++line) EXPECT_EQ(buffer.write(line * kCacheLine), 0);
  }
}

TEST(XpBuffer, EvictsTheLeastRecentlyUsedMediaLine) {
  XpBuffer buffer;
  for (std::uint64_t line = 0; line < XpBuffer::kLines; ++line) {
    EXPECT_EQ(buffer.write(line * kMediaLine), 0);
  }
  EXPECT_EQ(buffer.write(0), 0) << "still there";
  EXPECT_EQ(buffer.write(1000 * kMediaLine), 1);
  EXPECT_EQ(buffer.write(0), 0) << "was used after line 1, which had to go";
  EXPECT_EQ(buffer.write(1 * kMediaLine), 1);
}

TEST(XpBuffer, EvictsAsAListInTheOrderOfUseWould) {
  for (const unsigned media_lines : {1U, 63U, 64U, 65U, 80U, 200U, 5000U}) {
    SCOPED_TRACE(testing::Message() << media_lines << " media lines");
    std::mt19937 random(media_lines);
    XpBuffer buffer;
    PlainBuffer plain;
    for (int i = 0; i < 20000; ++i) {
      // Popular lines among rare ones, so that hits are at every depth.
      const std::uint64_t line = random() % (1 + random() % (4 * media_lines));
      ASSERT_EQ(buffer.write(line * kCacheLine), plain.write(line * kCacheLine)) << "write " << i;
    }
  }
}

}  // namespace
}  // namespace perdura::pmem
