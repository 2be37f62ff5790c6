// A resource that serves one request at a time, in order: a link, a bus, a memory controller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "platform/sim/kernel/virtual_time.h"

namespace perdura::sim {

class Resource {
 public:
  // Occupies the resource for `duration`, from `at` or as soon as it is free. Returns the start.
  Time take(Time at, Picoseconds duration) {
    const Time start = limited(std::max(at, free_at_));
    free_at_ = limited(start + duration);
    return start;
  }
  Time free_at() const { return free_at_; }

 private:
  Time free_at_{};
};

// A resource whose requests do not arrive in the order of virtual time. A task executes at once
// until it suspends, so it has already requested the resource for later times when a task of
// another thread requests it for times in between. The later request gets the gaps between the
// existing reservations.
class SharedResource {
 public:
  // `now`: the engine's time. `at` must not be before it, and no later request will be.
  Time take(Time now, Time at, Picoseconds duration) {
    while (first_ < taken_.size() && taken_[first_].end <= now) ++first_;
    if (first_ * 2 > taken_.size()) {
      taken_.erase(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    auto next =
        std::partition_point(taken_.begin() + static_cast<std::ptrdiff_t>(first_), taken_.end(),
                             [&](const Span& span) { return span.end <= at; });
    Time start = limited(at);
    for (; next != taken_.end() && next->begin < start + duration; ++next) {
      start = std::max(start, next->end);
    }
    if (duration > Picoseconds{}) taken_.insert(next, {start, limited(start + duration)});
    return start;
  }

 private:
  struct Span {
    Time begin;
    Time end;
  };
  std::vector<Span> taken_;  // reservations, disjoint and in the order of time
  std::size_t first_ = 0;    // index of the first reservation that is not in the past
};

}  // namespace perdura::sim
