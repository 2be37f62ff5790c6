// The clients of a process in the measured interval. Records the time in which all of them are at
// work.
#pragma once

#include <algorithm>
#include <atomic>

#include "harness/measure/at_work.h"
#include "platform/base/units.h"

namespace perdura::bench {

// Used by all threads of the process. The members that every operation reads change only twice in
// an interval, so that the clients do not contend for their cache line.
class Crew {
 public:
  explicit Crew(std::uint32_t clients) : missing_(clients) {}

  // To be called when a client begins.
  void begin(Time now) {
    raise(latest_, count(now));
    if (missing_.fetch_sub(1) == 1) since_.store(latest_.load());
  }
  // To be called by each lane that has run out of operations; in an open loop, by the client when
  // all of its lanes have. `last`: the time until which it was at work.
  void end(Time last) {
    std::int64_t until = until_.load();
    while (count(last) < until && !until_.compare_exchange_weak(until, count(last))) {
    }
  }
  // True if all clients were at work when an operation ended at `end`.
  bool were_at_work(Time end) const {
    return count(end) > since_.load(std::memory_order_relaxed) &&
           count(end) <= until_.load(std::memory_order_relaxed);
  }

  // To be called when all clients have ended; `operations` is how many ended while all were at
  // work.
  measure::AtWork at_work(std::uint64_t clock, std::uint64_t operations) const {
    return {clock, Time(Picoseconds(since_.load())), Time(Picoseconds(until_.load())), operations};
  }

 private:
  static std::int64_t count(Time time) { return time.time_since_epoch().count(); }
  static void raise(std::atomic<std::int64_t>& most, std::int64_t value) {
    std::int64_t before = most.load();
    while (value > before && !most.compare_exchange_weak(before, value)) {
    }
  }

  std::atomic<std::uint32_t> missing_;
  std::atomic<std::int64_t> latest_{0};
  std::atomic<std::int64_t> since_{count(Time::max())};
  std::atomic<std::int64_t> until_{count(Time::max())};
};

}  // namespace perdura::bench
