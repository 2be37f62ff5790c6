// The clock of the real platforms: it goes like CLOCK_MONOTONIC, but where the kernel itself keeps
// time by the processor's time stamp counter it reads that directly, which costs two thirds of a
// call of clock_gettime and is resolved in picoseconds instead of nanoseconds.
//
// All processes of a job use one clock: one of them starts it and puts it into shared memory, so
// that they convert ticks by the same numbers and their times can be compared. The kernel keeps
// time by the counter only if it goes at a constant rate, never stops, and is the same on all
// cores.
//
// now() waits for the loads and computations before it, as clock_gettime does: what was waited for
// has happened when its time is taken. begin() does not: for the start of an interval, it may lie
// before the last instructions that precede it, by some nanoseconds, so that an interval is never
// shown shorter than it was.
//
// Its rate is measured when a process first starts a clock, against 5 ms of CLOCK_MONOTONIC read
// with an uncertainty of some 15 ns at both ends: it is within 10 ppm of that clock's rate, and
// stays constant where CLOCK_MONOTONIC is being slewed by NTP. A duration of 1 ms is right to
// 10 ns; after an hour the two clocks may differ by 40 ms.
#pragma once

#include <cstdint>

#include "platform/base/units.h"

namespace perdura::runtime {

struct HostClock {
  std::uint64_t epoch = 0;       // time zero, in ns of CLOCK_MONOTONIC
  std::uint64_t first_tick = 0;  // the counter at time zero
  std::uint64_t scale = 0;       // ps a tick, times 2^32; 0: read CLOCK_MONOTONIC instead

  // A clock whose time zero is now; the first one of a process takes 5 ms.
  static HostClock start();
  // One that reads CLOCK_MONOTONIC.
  static HostClock start_without_counter();

  Time now() const {
    if (scale == 0) [[unlikely]]
      return read_monotonic();
    // Later memory accesses do not move before it either, as far as the compiler is concerned.
    asm volatile("lfence" : : : "memory");
    return at(read_counter());
  }
  Time begin() const { return scale == 0 ? read_monotonic() : at(read_counter()); }

  // The time at which the counter has gone on so far from time zero.
  Time after(std::uint64_t ticks) const {
    return Time(Picoseconds(static_cast<std::int64_t>((Wide{ticks} * scale) >> 32)));
  }

 private:
  __extension__ typedef unsigned __int128 Wide;

  static std::uint64_t read_counter() {
    std::uint32_t low;
    std::uint32_t high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return std::uint64_t{high} << 32 | low;
  }
  Time at(std::uint64_t tick) const { return after(tick > first_tick ? tick - first_tick : 0); }
  Time read_monotonic() const;
  static std::uint64_t measure_scale();
};

}  // namespace perdura::runtime
