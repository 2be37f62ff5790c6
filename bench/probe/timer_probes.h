// How long the operating system lets a thread sleep that asks for microseconds: what a published
// latency may be that comes from a program with a usleep() in it.
#pragma once

#include <string_view>

#include "bench/probe/probe.h"

namespace perdura::bench {

// Linux rounds the end of a sleep up by the thread's timer slack, so that several timers can share
// an interrupt (prctl(2), PR_SET_TIMERSLACK); threads of real-time classes have none.
struct TimerSlack {
  std::string_view name;
  Nanoseconds slack;
};
inline constexpr TimerSlack kDefaultSlack{"usleep(2)", std::chrono::microseconds(50)};
inline constexpr TimerSlack kLeastSlack{"usleep(2), slack 1 ns", Nanoseconds(1)};

// Nanoseconds that usleep(2), two microseconds, lasts on a thread with that slack.
std::vector<double> short_sleep(Platform& platform, TimerSlack slack, const Effort& effort);

// On the model none: it has the wake-up latencies of a profile, and no timers of an operating
// system.
ProbeSet timer_probes(const Effort& effort, bool modelled);

}  // namespace perdura::bench
