// Throughput of clients that do not all end at the same time, computed over the time in which all
// of them were at work. A throughput over the time until the last client ends is too low if each
// client has few operations, because most clients have ended long before; throughput times latency
// would then no longer be the number of clients, as Little's law demands.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"

namespace perdura::measure {

// Identifies the clock of this host. The number is the same in all processes whose times can be
// compared: those on one host since it was booted, whose platforms share a clock
// (runtime/host_clock.h).
std::uint64_t clock_of_this_host();

// The interval in which all clients of one process were at work: from when the last of them began
// until the first of them had nothing more to do.
struct AtWork {
  std::uint64_t clock = 0;  // clock of the times: clock_of_this_host(), or 0 on `sim`
  Time begin = Time::max();
  Time end = Time::min();        // before `begin` if there was no such interval
  std::uint64_t operations = 0;  // those that ended within it

  bool operator==(const AtWork&) const = default;
};

// The interval in which all clients of all processes were at work.
struct AllAtWork {
  Picoseconds time{};
  double operations = 0;  // those that ended within it

  double per_second() const { return operations / (static_cast<double>(time.count()) * 1e-12); }
};

// Returns nullopt if there are no clients or they were never all at work. The operations of a
// process are assumed to have ended evenly over its interval. Times of different clocks cannot be
// compared; the processes of each clock are then assumed to have begun together, at the barrier
// before the interval.
std::optional<AllAtWork> all_at_work(std::span<const AtWork> processes);

}  // namespace perdura::measure
