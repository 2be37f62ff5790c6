// Probes of how long the operating system really lets a thread sleep that asks for microseconds.
// Published latencies that were measured by a program with a usleep() in it may consist of that.
#pragma once

#include <string_view>

#include "bench/probe/probe.h"

namespace perdura::bench {

// Linux may end a sleep later by up to the thread's timer slack, so that several timers can share
// an interrupt (prctl(2), PR_SET_TIMERSLACK); threads of real-time classes have no slack.
struct TimerSlack {
  std::string_view name;
  Nanoseconds slack;
};
inline constexpr TimerSlack kDefaultSlack{"usleep(2)", std::chrono::microseconds(50)};
inline constexpr TimerSlack kLeastSlack{"usleep(2), slack 1 ns", Nanoseconds(1)};

// Nanoseconds that usleep(2), a sleep of two microseconds, lasts on a thread with the given slack.
std::vector<double> short_sleep(Platform& platform, TimerSlack slack, const Effort& effort);

// Returns no probes on the model, which has a profile's wake-up latencies but no timers of an
// operating system.
ProbeSet timer_probes(const Effort& effort, bool modelled);

}  // namespace perdura::bench
