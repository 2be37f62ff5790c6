// Memory with a short past: a device that looks at each line at its own moment sees what was
// visible then, checked exhaustively against a model that keeps every line's whole history.
#include "platform/pmem/sim/timeline.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace perdura::pmem::sim {
namespace {

Time at(std::int64_t ps) { return Time(Picoseconds(ps)); }

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(Timeline, AReadBeforeAStoreIsVisibleSeesTheOldBytesAndTheCpuTheNewOnes) {
  std::array<std::byte, 256> memory{};
  Timeline timeline(memory.data());
  timeline.begin_device_read(at(50));
  timeline.change(at(0), 64, filled(64, 7), Timeline::Writer::cpu, {at(100), {}});
  std::vector<std::byte> seen(64);
  timeline.device_read(64, seen, {at(99), {}});
  EXPECT_EQ(seen, filled(64, 0));
  timeline.device_read(64, seen, {at(100), {}});
  EXPECT_EQ(seen, filled(64, 7));
  timeline.cpu_read(64, seen, at(0));
  EXPECT_EQ(seen, filled(64, 7)) << "a CPU sees its node's own stores at once";
}

TEST(Timeline, ACpuSeesOfAnArrivingWriteWhatHasBeenPlaced) {
  std::array<std::byte, 256> memory{};
  Timeline timeline(memory.data());
  timeline.change(at(0), 0, filled(256, 9), Timeline::Writer::device, {at(10), Picoseconds(10)});
  std::vector<std::byte> seen(256);
  timeline.cpu_read(0, seen, at(25));
  EXPECT_EQ(seen[0], std::byte{9});
  EXPECT_EQ(seen[64], std::byte{9});
  EXPECT_EQ(seen[128], std::byte{0});
  EXPECT_EQ(seen[192], std::byte{0});
}

// Every way in which two changes of four lines and one read of them can lie in time.
TEST(Timeline, EveryReadSeesEachLineAsItWasAtItsMoment) {
  constexpr int kLines = 4;
  std::uint64_t torn = 0;
  std::uint64_t cases = 0;
  for (int first_start = 0; first_start < 8; ++first_start) {
    for (int second_start = first_start; second_start < 10; ++second_start) {
      for (int first_step = 0; first_step < 3; ++first_step) {
        for (int second_step = 0; second_step < 3; ++second_step) {
          for (int read_start = 0; read_start < 16; ++read_start) {
            for (int read_step = 0; read_step < 3; ++read_step) {
              ++cases;
              std::array<std::byte, kLines * 64> memory{};
              Timeline timeline(memory.data());
              timeline.begin_device_read(at(read_start));
              timeline.change(at(0), 0, filled(memory.size(), 1), Timeline::Writer::cpu,
                              {at(first_start), Picoseconds(first_step)});
              timeline.change(at(0), 0, filled(memory.size(), 2), Timeline::Writer::device,
                              {at(second_start), Picoseconds(second_step)});
              std::vector<std::byte> seen(memory.size());
              timeline.device_read(0, seen, {at(read_start), Picoseconds(read_step)});
              bool whole = true;
              for (int line = 0; line < kLines; ++line) {
                const int moment = read_start + line * read_step;
                // The second change lies after the first in coherence order, so it is not visible
                // before the first is.
                int expected = 0;
                if (first_start + line * first_step <= moment) {
                  expected = second_start + line * second_step <= moment ? 2 : 1;
                }
                EXPECT_EQ(static_cast<int>(seen[line * 64]), expected);
                EXPECT_EQ(seen[line * 64], seen[line * 64 + 63]) << "a line is never torn";
                whole = whole && seen[line * 64] == seen[0];
              }
              torn += whole ? 0 : 1;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(torn, cases / 10) << "reads that overlap updates must be able to be torn";
}

TEST(Timeline, ThePastIsForgottenWhenNobodyCanLookAtItAnyMore) {
  std::array<std::byte, 64> memory{};
  Timeline timeline(memory.data());
  for (int i = 0; i < 1000; ++i) {
    timeline.change(at(i * 10), 0, filled(64, i % 100), Timeline::Writer::cpu,
                    {at(i * 10 + 5), {}});
    EXPECT_LE(timeline.changes_remembered(), 2U);
  }
}

}  // namespace
}  // namespace perdura::pmem::sim
