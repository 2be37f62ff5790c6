// Something that serves one request after the other: a link, a bus, a memory controller.
#pragma once

#include <algorithm>
#include <cmath>

#include "platform/units.h"

namespace perdura::sim {

class Resource {
 public:
  // Occupies the resource for `duration` from `at` on or as soon as it is free; returns the start.
  Time take(Time at, Picoseconds duration) {
    const Time start = std::max(at, free_at_);
    free_at_ = start + duration;
    return start;
  }
  Time free_at() const { return free_at_; }

 private:
  Time free_at_{};
};

// Time to move `bytes` at `bandwidth` bytes per second, rounded to whole picoseconds.
inline Picoseconds transfer_time(Bytes bytes, double bandwidth) {
  return Picoseconds(std::llround(static_cast<double>(bytes) * 1e12 / bandwidth));
}

}  // namespace perdura::sim
