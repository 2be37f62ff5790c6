#include "bench/probe/timer_probes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::bench {
namespace {

using Values = std::vector<double>;

Task<> time_sleeps(Thread& thread, TimerSlack slack, Effort effort, Values* values) {
  const std::uint32_t sleeps = std::clamp(effort.loads / 1000, 1U, 1000U);
  // The thread is the probe's own and ends with it, so its slack need not be put back.
  if (prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack.slack.count()), 0, 0, 0) != 0) {
    throw PlatformError("the timer slack of a thread cannot be set (prctl)");
  }
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    const Time begin = thread.executor.now();
    for (std::uint32_t n = 0; n < sleeps; ++n) usleep(2);
    values->push_back(static_cast<double>((thread.executor.now() - begin).count()) * 1e-3 / sleeps);
    co_await yield();
  }
}

}  // namespace

Values short_sleep(Platform& platform, TimerSlack slack, const Effort& effort) {
  Values values;
  if (platform.local_node(0) != nullptr) {
    platform.start(0, 1, CompletionMode::polling,
                   [&](Thread& thread) { return time_sleeps(thread, slack, effort, &values); });
  }
  platform.run();
  return values;
}

ProbeSet timer_probes(const Effort& effort, bool modelled) {
  ProbeSet set;
  if (modelled) {
    set.unanswered.push_back({"timer", "the model has no timers of an operating system"});
    return set;
  }
  for (const TimerSlack slack : {kDefaultSlack, kLeastSlack}) {
    Setting setting{.probe = "timer", .operation = std::string(slack.name)};
    setting.unit = "ns";
    set.probes.push_back(
        {.setting = std::move(setting), .measure = [=](Platform& platform, const Gather&) {
           return short_sleep(platform, slack, effort);
         }});
  }
  return set;
}

}  // namespace perdura::bench
