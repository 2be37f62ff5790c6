// A DIMM of 3D XPoint, and memory made of several (platform/pmem/sim/).
#include "platform/pmem/sim/dimm.h"

#include <gtest/gtest.h>

#include "platform/pmem/sim/memory_controller.h"

namespace perdura::pmem::sim {
namespace {

using perdura::sim::DimmProfile;
using perdura::sim::MemoryProfile;
using perdura::sim::NumaProfile;

constexpr Picoseconds kRead{300'000};
constexpr Picoseconds kHit{120'000};
constexpr Time kStart{};

// The media take 64 ns to read a line and 128 ns to write one.
MemoryProfile memory(std::uint32_t dimms = 1) {
  MemoryProfile profile;
  profile.read_latency = kRead;
  profile.write_latency = profile.streaming_latency = Picoseconds(40'000);
  profile.read_bandwidth = 4e9 * dimms;
  profile.write_bandwidth = 2e9 * dimms;
  profile.dimms = DimmProfile{dimms, 4 * KiB, 64, 2, kHit, 64e9, 8, 12};
  return profile;
}

TEST(Dimm, ALineIsReadFromTheMediaOnceAndThenThreeTimesFromTheBuffer) {
  const MemoryProfile profile = memory();
  Dimm dimm(profile);
  Time now = kStart;
  for (Bytes address = 0; address < 16 * kMediaLine; address += kCacheLine) {
    const Time there = dimm.read(now, now, address);
    EXPECT_EQ(there - now, address % kMediaLine == 0 ? kRead : kHit) << address;
    now = there;
  }
  EXPECT_EQ(dimm.media_reads(), 16U);
  EXPECT_EQ(dimm.media_writes(), 0U);
}

TEST(Dimm, LinesThatAreAskedForTogetherWaitForTheSameMediaLine) {
  const MemoryProfile profile = memory();
  Dimm dimm(profile);
  for (Bytes line = 0; line < 4; ++line) {
    const Time there = dimm.read(kStart, kStart, line * kCacheLine);
    EXPECT_EQ(there - kStart, kRead + Picoseconds(1000) * static_cast<std::int64_t>(line));
  }
  EXPECT_EQ(dimm.media_reads(), 1U);
}

// What the media do for `count` lines of 64 bytes that are written `stride` bytes apart.
struct MediaLines {
  std::uint64_t reads;
  std::uint64_t writes;
  bool operator==(const MediaLines&) const = default;
};
MediaLines write_lines(Bytes count, Bytes stride) {
  const MemoryProfile profile = memory();
  Dimm dimm(profile);
  Time now = kStart;
  for (Bytes i = 0; i < count; ++i) now = dimm.write(now, now, i * stride);
  return {dimm.media_reads(), dimm.media_writes()};
}

TEST(Dimm, WhatIsWrittenStaysInTheBufferAsLongAsItFits) {
  EXPECT_EQ(write_lines(64, kMediaLine), (MediaLines{0, 0}));
  EXPECT_EQ(write_lines(256, kCacheLine), (MediaLines{0, 0}));
}

TEST(Dimm, WholeLinesAreWrittenOnceAndPartsOfThemAreReadAndWritten) {
  constexpr std::uint64_t kLines = 1000;
  EXPECT_EQ(write_lines(4 * kLines, kCacheLine), (MediaLines{0, kLines - 64}));
  // Four times the bytes that were issued, and as much is read.
  EXPECT_EQ(write_lines(kLines, kMediaLine), (MediaLines{kLines - 64, kLines - 64}));
}

TEST(Dimm, ALineThatWasReadIsWrittenBackWithoutReadingItAgain) {
  const MemoryProfile profile = memory();
  Dimm dimm(profile);
  Time now = kStart;
  for (std::uint64_t i = 0; i < 200; ++i) {
    now = dimm.read(now, now, i * kMediaLine);
    now = dimm.write(now, now, i * kMediaLine);
  }
  EXPECT_EQ(dimm.media_reads(), 200U);
  EXPECT_EQ(dimm.media_writes(), 200U - 64);
}

TEST(Dimm, ManyStreamsDriveEachOthersHalfWrittenLinesOut) {
  const auto writes_for_each_line = [](Bytes streams) {
    const MemoryProfile profile = memory();
    Dimm dimm(profile);
    constexpr Bytes kLines = 4096;  // of a stream
    for (Bytes at = 0; at < kLines * kMediaLine; at += kCacheLine) {
      for (Bytes stream = 0; stream < streams; ++stream) {
        dimm.write(kStart, kStart, stream * MiB + at);
      }
    }
    return static_cast<double>(dimm.media_writes()) / static_cast<double>(streams * kLines);
  };
  EXPECT_LE(writes_for_each_line(1), 1);
  EXPECT_LE(writes_for_each_line(2), 1);
  EXPECT_GT(writes_for_each_line(8), writes_for_each_line(2));
  EXPECT_GT(writes_for_each_line(24), 1.2 * writes_for_each_line(8));
}

TEST(Dimm, TheQueueTakesSoManyLinesAtOnceAndThenOneForEachThatLeaves) {
  const MemoryProfile profile = memory();
  Dimm dimm(profile);
  // Fills the buffer: from here on a line drives a part of one out, 192 ns.
  Time now = kStart;
  for (Bytes i = 0; i < 64; ++i) now = dimm.write(now, now, i * kMediaLine);
  now += Picoseconds(1'000'000);
  std::vector<Time> taken;
  for (Bytes i = 0; i < 32; ++i) taken.push_back(dimm.write(now, now, (64 + i) * kMediaLine));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(taken[i], now) << i;
  for (std::size_t i = 16; i < 32; ++i) {
    EXPECT_EQ(taken[i] - taken[i - 1], Picoseconds(192'000)) << i;
  }
}

// Reads of whole chunks, all asked for at once: GB/s.
double bandwidth_of(std::uint32_t dimms, bool one_dimm) {
  const MemoryProfile profile = memory(dimms);
  MemoryController controller(profile);
  constexpr Bytes kSize = 384 * KiB;
  const Bytes address = controller.allocate(kSize, one_dimm);
  const auto read = controller.read(kStart, kStart, address, kSize / kCacheLine);
  return static_cast<double>(kSize) * 1e3 / static_cast<double>((read.last - kStart).count());
}

TEST(MemoryController, SixDimmsReadSixTimesAsFastAsOne) {
  EXPECT_NEAR(bandwidth_of(6, false) / bandwidth_of(1, false), 6, 0.3);
  EXPECT_DOUBLE_EQ(bandwidth_of(6, true), bandwidth_of(1, false));
}

TEST(MemoryController, ChunksOfTheInterleavingLieInTheDimmsInTurn) {
  const MemoryProfile profile = memory(6);
  MemoryController controller(profile);
  const Bytes address = controller.allocate(24 * KiB, false);
  for (Bytes chunk = 0; chunk < 6; ++chunk) {
    controller.read(kStart, kStart, address + chunk * 4 * KiB, 4 * KiB / kCacheLine);
    for (Bytes dimm = 0; dimm < 6; ++dimm) {
      EXPECT_EQ(controller.dimms()[dimm].media_reads(), dimm <= chunk ? 16U : 0U);
    }
  }
}

TEST(MemoryController, WithoutDimmsItIsOnePipeWithALatency) {
  MemoryProfile profile = memory();
  profile.dimms.reset();
  MemoryController controller(profile);
  for (int i = 0; i < 3; ++i) {
    const auto read = controller.read(kStart, kStart, 0, 4);
    EXPECT_EQ(read.first - kStart, kRead + Picoseconds(64'000) * i) << "no buffer knows the line";
    EXPECT_EQ(read.last - read.first, Picoseconds(64'000));
    EXPECT_EQ(controller.write(kStart, kStart, 0, 4) - kStart, Picoseconds(128'000) * (i + 1));
  }
}

TEST(MemoryController, AnOpenRowIsReadFaster) {
  MemoryProfile profile = memory();
  profile.dimms.reset();
  profile.rows = {8 * KiB, 2, Picoseconds(80'000)};
  MemoryController controller(profile);
  Time now = kStart;
  const auto latency = [&](Bytes address) {
    now += Picoseconds(1'000'000);
    return controller.read(now, now, address, 1).first - now;
  };
  EXPECT_EQ(latency(0), kRead);
  EXPECT_EQ(latency(8 * KiB - kCacheLine), Picoseconds(80'000));
  EXPECT_EQ(latency(8 * KiB), kRead);
  EXPECT_EQ(latency(0), Picoseconds(80'000)) << "each bank has its own";
  EXPECT_EQ(latency(16 * KiB), kRead);
  EXPECT_EQ(latency(0), kRead) << "closed by another row of the bank";
}

TEST(MemoryController, TheLinkAddsARoundTripAndForStoresPastTheCacheTwo) {
  const MemoryProfile profile = memory();
  const NumaProfile numa{Picoseconds(60'000), 64e9};
  MemoryController local(profile);
  MemoryController remote(profile, &numa);
  EXPECT_EQ(remote.read(kStart, kStart, 0, 1).first - local.read(kStart, kStart, 0, 1).first,
            numa.round_trip);
  EXPECT_EQ(remote.write_latency(false) - local.write_latency(false), numa.round_trip);
  EXPECT_EQ(remote.write_latency(true) - local.write_latency(true), 2 * numa.round_trip);
}

}  // namespace
}  // namespace perdura::pmem::sim
