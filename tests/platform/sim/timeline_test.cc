// Memory with a short past: a device that looks at each line at its own moment sees what was
// visible then, checked exhaustively against a model that keeps every line's whole history.
#include "platform/pmem/sim/timeline.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
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

// Every change that there ever was, looked through from the newest to the oldest.
struct WholeHistory {
  struct Change {
    Bytes offset;
    LineTimes visible;
    Timeline::Writer writer;
    std::vector<std::byte> replaced;
  };
  std::vector<std::byte> memory;
  std::vector<Change> changes;

  void change(Bytes offset, std::span<const std::byte> bytes, Timeline::Writer writer,
              LineTimes visible) {
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(offset);
    changes.push_back(
        {offset, visible, writer, {begin, begin + static_cast<std::ptrdiff_t>(bytes.size())}});
    std::copy(bytes.begin(), bytes.end(), begin);
  }
  std::vector<std::byte> read(Bytes offset, Bytes length, LineTimes seen, bool cpu) const {
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(offset);
    std::vector<std::byte> bytes(begin, begin + static_cast<std::ptrdiff_t>(length));
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
      if (cpu && change->writer == Timeline::Writer::cpu) continue;
      for (Bytes at = std::max(offset, change->offset);
           at < std::min(offset + length, change->offset + change->replaced.size()); ++at) {
        const Time visible = change->visible.of(at / 64 - change->offset / 64);
        const Time moment = cpu ? seen.first : seen.of(at / 64 - offset / 64);
        if (visible > moment) bytes[at - offset] = change->replaced[at - change->offset];
      }
    }
    return bytes;
  }
};

// However many changes are under way, and however few: what is seen is the same.
TEST(Timeline, OfManyChangesUnderWayReadsSeeWhatTheWholeHistoryTells) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr Bytes kSize = 32 * KiB;
  for (const int under_way : {3, 30, 3000}) {
    std::vector<std::byte> memory(kSize);
    Timeline timeline(memory.data());
    WholeHistory whole{std::vector<std::byte>(kSize), {}};
    std::vector<std::pair<Time, Time>> readers;  // from when on, and when they end
    std::size_t most = 0;
    for (int step = 0; step < 4000; ++step) {
      const Time now = at(step * 10);
      const Bytes length = 1 + random() % (random() % 8 == 0 ? 6000 : 200);
      const Bytes offset = random() % (kSize - length);
      const auto lines = static_cast<std::uint32_t>((offset + length - 1) / 64 - offset / 64 + 1);
      const Time first = now + Picoseconds(random() % (10 * under_way));
      const Picoseconds per_line(random() % 20);
      switch (random() % 4) {
        case 0:
        case 1: {
          const auto writer = random() % 2 == 0 ? Timeline::Writer::cpu : Timeline::Writer::device;
          const LineTimes visible{first, per_line, lines, 1,
                                  static_cast<std::uint32_t>(random() % lines)};
          const auto bytes = filled(length, step);
          timeline.change(now, offset, bytes, writer, visible);
          whole.change(offset, bytes, writer, visible);
          break;
        }
        case 2:
          readers.emplace_back(first, first + Picoseconds(100));
          timeline.begin_device_read(first);
          break;
        default: {
          timeline.forget_before(now);
          std::vector<std::byte> seen(length);
          timeline.cpu_read(offset, seen, first);
          ASSERT_EQ(seen, whole.read(offset, length, {first, {}}, true)) << "step " << step;
        }
      }
      std::erase_if(readers, [&](const auto& reader) {
        if (reader.second > now) return false;
        timeline.forget_before(now);
        std::vector<std::byte> seen(length);
        const LineTimes moments{reader.first, Picoseconds(100) / lines};
        timeline.device_read(offset, seen, moments);
        EXPECT_EQ(seen, whole.read(offset, length, moments, false)) << "step " << step;
        timeline.end_device_read(reader.first);
        return true;
      });
      most = std::max(most, timeline.changes_remembered());
    }
    EXPECT_GE(most, under_way / 4) << "that many should be under way at once";
  }
}

// What a read costs depends on what happens where it looks, not on all that is under way.
TEST(Timeline, AReadLooksOnlyAtChangesNearby) {
  std::vector<std::byte> memory(4 * MiB);
  Timeline timeline(memory.data());
  for (Bytes offset = 0; offset < memory.size(); offset += 4096) {
    timeline.change(at(0), offset, filled(1024, 1), Timeline::Writer::cpu, {at(100), {}});
  }
  std::vector<std::byte> seen(1024);
  timeline.begin_device_read(at(1));
  timeline.device_read(2 * MiB, seen, {at(1), {}});
  EXPECT_EQ(seen, filled(1024, 0));
  EXPECT_LE(timeline.changes_looked_at(), 8U);
  timeline.end_device_read(at(1));
}

}  // namespace
}  // namespace perdura::pmem::sim
