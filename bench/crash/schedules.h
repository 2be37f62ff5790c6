// Explores the schedules of small histories by a strategy (platform/explore): which messages are
// late (with CrashSetup::late_placements, also which devices). For each schedule the power of the
// servers fails at every moment at which that makes a difference, or twice, at every pair of such
// moments.
//
// The histories are generated runs (generated_run.h) of few operations: many choices of their
// clients are 0, and the store is the simplest one, of one key. Threads do not stall, and nobody
// dies. What is found is a tape, like that of a soak, so it can be made simpler and repeated alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "bench/crash/soak.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {

enum class StrategyKind : std::uint8_t {
  exhaustive,  // all schedules, depth first
  bounded,     // all with at most so many deviations (explore::Bounded)
  pct,         // random ones that find a bug with a stated probability (explore::Pct)
  random,      // random ones
};

constexpr std::string_view kStrategies[] = {"exhaustive", "bounded", "pct", "random"};
constexpr std::string_view to_string(StrategyKind kind) {
  return kStrategies[static_cast<int>(kind)];
}

struct ScheduleOptions {
  StrategyKind strategy = StrategyKind::bounded;
  std::uint32_t deviations = 1;  // bounded: at most so many late messages or placements
  std::uint32_t depth = 2;       // of the bugs that `pct` is to find
  std::uint64_t histories = 20;
  std::uint64_t schedules = 0;      // of a history at most; 0: all, of pct and random 100
  std::uint64_t seed = 1;           // of the first history, and of random schedules
  std::uint32_t random_images = 0;  // at each moment, besides those that keep least and most
  // 1: the power of all servers fails. 2: it fails twice, each time of all or of one alone, which
  // is back at once or stays away for a while; in histories of even seeds others do not wait that
  // long.
  std::uint32_t failures = 1;
  std::uint64_t stride = 1;  // of two failures, one of so many moments is tried for each
  unsigned threads = 0;      // 0: as many as there are cores
  // Called before each run with the share that is done, from 0 to 1; in any thread, but not in two
  // at once. What it throws ends the exploration.
  std::function<void(double share)> progress{};
  // While what was found is made simpler, see ShrinkLimits.
  std::function<bool()> stop{};
};

struct ScheduleResult {
  std::uint64_t histories = 0;
  std::uint64_t schedules = 0;
  std::uint64_t failures = 0;  // runs with a failure, or with two
  // The first run that kept less than expected, made simpler; the exploration ends with it.
  std::optional<SoakFinding> finding{};

  // For `pct`: the largest k of all histories, which is how many single delays a schedule has to
  // choose from, and the least probability that one schedule of a history makes certain depth - 1
  // of them. PCT's n does not occur: no task or thread has a priority, since times decide which is
  // next.
  std::uint64_t choices = 0;
  double probability = 1;
};

// The setting decides what is run, `one.expected` what it must keep.
ScheduleResult explore_schedules(const SoakCase& one, const sim::Profile& profile,
                                 const ScheduleOptions& options);

}  // namespace perdura::bench
