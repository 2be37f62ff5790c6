// Throughput of clients that do not all end at the same time: it is taken of the time in which all
// of them were at work. What is counted to the last one's end falls with clients that have little
// to do each, because most of them have ended long before; then throughput times latency is no
// longer the number of clients, as Little's law has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"

namespace perdura::measure {

// The same number in all processes whose times can be compared: those of one host since it was
// booted, whose platforms share a clock (runtime/host_clock.h).
std::uint64_t clock_of_this_host();

// When all clients of one process were at work: from when the last of them began until the first of
// them had nothing more to do.
struct AtWork {
  std::uint64_t clock = 0;  // of its times: clock_of_this_host(), or 0 on `sim`
  Time begin = Time::max();
  Time end = Time::min();        // before `begin`: there was no such time
  std::uint64_t operations = 0;  // that ended within it

  bool operator==(const AtWork&) const = default;
};

// The same of all clients of all processes.
struct AllAtWork {
  Picoseconds time{};
  double operations = 0;  // that ended within it

  double per_second() const { return operations / (static_cast<double>(time.count()) * 1e-12); }
};

// Nothing if they never were all at work, or there are none. A process' operations are taken to
// have ended evenly over its time. Where clocks differ times cannot be compared: the processes of
// each clock are then taken to have begun together, as the barrier before the interval lets them.
std::optional<AllAtWork> all_at_work(std::span<const AtWork> processes);

}  // namespace perdura::measure
