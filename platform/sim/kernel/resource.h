// Something that serves one request after the other: a link, a bus, a memory controller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "platform/sim/kernel/virtual_time.h"

namespace perdura::sim {

class Resource {
 public:
  // Occupies the resource for `duration` from `at` on or as soon as it is free; returns the start.
  Time take(Time at, Picoseconds duration) {
    const Time start = limited(std::max(at, free_at_));
    free_at_ = limited(start + duration);
    return start;
  }
  Time free_at() const { return free_at_; }

 private:
  Time free_at_{};
};

// The same for those whose requests are not made in the order of time: a task runs as a whole, so
// it has asked for all that it needs before another thread's, which begins a little later, asks for
// what it needs in between. That one gets the time that is left between the other's.
class SharedResource {
 public:
  // `now` is the engine's: nothing is asked for any more before it, and `at` is not before it.
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
  std::vector<Span> taken_;  // apart from each other, in the order of time
  std::size_t first_ = 0;    // those before it are past
};

}  // namespace perdura::sim
