// Probes of how long a thread really sleeps after it has asked the operating system for a sleep of
// microseconds. If the program that measured a published latency calls usleep(), the latency may be
// mostly such a sleep.
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

// Returns how many nanoseconds the call usleep(2), which asks for two microseconds, lasts on a
// thread with the given slack.
std::vector<double> short_sleep(Platform& platform, TimerSlack slack, const Effort& effort);

// Returns no probes on the model, which has a profile's wake-up latencies but no timers of an
// operating system.
ProbeSet timer_probes(const Effort& effort, bool modelled);

}  // namespace perdura::bench
