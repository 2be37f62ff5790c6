// Units that the whole suite shares. Time is counted in picoseconds since the platform started, so
// that a simulated link of 100 Gb/s (80 ps per byte) needs no fractions; 64 bits last for 106 days.
#pragma once

#include <chrono>
#include <cstdint>

namespace perdura {

using Bytes = std::uint64_t;
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using Nanoseconds = std::chrono::nanoseconds;
using Microseconds = std::chrono::microseconds;
using Milliseconds = std::chrono::milliseconds;

// The clock of a platform: virtual on `sim`, real time on the others (runtime/host_clock.h).
struct PlatformClock {
  using duration = Picoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<PlatformClock>;
  static constexpr bool is_steady = true;
};
using Time = PlatformClock::time_point;

inline constexpr Bytes kWord = 8;         // failure-atomic unit of persistent memory
inline constexpr Bytes kCacheLine = 64;   // unit of flushing
inline constexpr Bytes kMediaLine = 256;  // unit in which Optane media are written
inline constexpr Bytes KiB = 1024;
inline constexpr Bytes MiB = 1024 * KiB;
inline constexpr Bytes GiB = 1024 * MiB;

constexpr Bytes round_up(Bytes n, Bytes unit) { return (n + unit - 1) / unit * unit; }

constexpr double to_microseconds(Picoseconds d) { return static_cast<double>(d.count()) * 1e-6; }

}  // namespace perdura
