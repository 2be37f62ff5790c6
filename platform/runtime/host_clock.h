// The clock of the real platforms. It follows CLOCK_MONOTONIC. If the kernel itself keeps time by
// the processor's time stamp counter (TSC), this clock reads the counter directly, which costs two
// thirds of a call of clock_gettime and gives picoseconds instead of nanoseconds.
//
// All processes of a job share one clock: one process starts it and puts it into shared memory, so
// that all convert ticks with the same constants and their times can be compared. The kernel keeps
// time by the counter only if the counter runs at a constant rate, never stops, and is synchronized
// between cores.
//
// now() waits for the preceding loads and computations, as clock_gettime does, so that an event
// that was waited for has happened when its time is taken. begin() does not wait: it marks the
// start of an interval and may be some nanoseconds earlier than the last instructions that precede
// it, so that an interval is never reported as shorter than it was.
//
// The counter's rate is measured when a process first starts a clock, against 5 ms of
// CLOCK_MONOTONIC, which is read with an uncertainty of some 15 ns at both ends. The measured rate
// is within 10 ppm of that clock's rate; it stays constant while NTP slews CLOCK_MONOTONIC. A
// duration of 1 ms is right to 10 ns; after an hour the two clocks may differ by 40 ms.
#pragma once

#include <cstdint>

#include "platform/base/units.h"

namespace perdura::runtime {

struct HostClock {
  std::uint64_t epoch = 0;       // time zero, in ns of CLOCK_MONOTONIC
  std::uint64_t first_tick = 0;  // the counter at time zero
  std::uint64_t scale = 0;  // picoseconds per tick, times 2^32; 0: read CLOCK_MONOTONIC instead

  // Starts a clock whose time zero is now. The first call in a process takes 5 ms.
  static HostClock start();
  // Starts a clock that always reads CLOCK_MONOTONIC.
  static HostClock start_without_counter();

  Time now() const {
    if (scale == 0) [[unlikely]]
      return read_monotonic();
    // The "memory" clobber also keeps the compiler from moving later memory accesses before it.
    asm volatile("lfence" : : : "memory");
    return at(read_counter());
  }
  Time begin() const { return scale == 0 ? read_monotonic() : at(read_counter()); }

  // The time at which the counter has advanced by `ticks` since time zero.
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
