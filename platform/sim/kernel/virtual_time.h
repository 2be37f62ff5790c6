// Saturating arithmetic on virtual time. A result beyond the end of virtual time is set to the end,
// and an overflow flag is set; the run then fails, since its times would be wrong
// (SimPlatform::run).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "platform/base/units.h"

namespace perdura::sim {

// The longest virtual time: thirteen days. A Time can hold a few times that, so sums of a few
// durations need no check.
inline constexpr Picoseconds kLongest{std::int64_t{1} << 60};
inline constexpr Time kEndOfTime{kLongest};

// Set if a time in the simulation that the calling thread runs had to be limited.
inline constinit thread_local bool time_ran_out = false;

inline Picoseconds limited(Picoseconds time) {
  if (time > kLongest) [[unlikely]] {
    time_ran_out = true;
    return kLongest;
  }
  return time;
}
inline Time limited(Time time) { return Time(limited(time.time_since_epoch())); }

inline Picoseconds times(Picoseconds each, std::uint64_t count) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(each.count(), count, &product)) [[unlikely]] {
    time_ran_out = true;
    return kLongest;
  }
  return limited(Picoseconds(product));
}

// Time to move `bytes` at `bandwidth` bytes per second, rounded to whole picoseconds.
inline Picoseconds transfer_time(Bytes bytes, double bandwidth) {
  const double time = static_cast<double>(bytes) * 1e12 / bandwidth;
  if (!(time < static_cast<double>(kLongest.count()))) [[unlikely]] {
    time_ran_out = true;
    return kLongest;
  }
  return Picoseconds(std::llround(time));
}

}  // namespace perdura::sim
