// Explores the schedules of small histories by a strategy (platform/strategies). A schedule says
// which messages are late and, with CrashSetup::late_placements, also which devices. In each
// schedule the power of the servers fails at every crash point at which that makes a difference;
// with two failures, it fails at every pair of such crash points.
//
// The histories are generated runs (generated_run.h) of few operations: many choices of their
// clients are 0, the simplest alternative, and the store is the simplest one, of one key. Threads
// do not stall, and no process dies. A finding is a tape, as in a soak (soak.h), and is shrunk and
// repeated in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "explore/soak.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::explore {

enum class StrategyKind : std::uint8_t {
  exhaustive,  // all schedules, depth first
  bounded,     // all with at most so many deviations (strategies::Bounded)
  pct,         // random ones that find a bug with a stated probability (strategies::Pct)
  random,      // random ones
};

constexpr std::string_view kStrategies[] = {"exhaustive", "bounded", "pct", "random"};
constexpr std::string_view to_string(StrategyKind kind) {
  return kStrategies[static_cast<int>(kind)];
}

struct ScheduleOptions {
  StrategyKind strategy = StrategyKind::bounded;
  std::uint32_t deviations = 1;  // bounded: at most so many late messages or placements
  std::uint32_t depth = 2;       // pct: a bug may need depth - 1 late messages or placements
  std::uint64_t histories = 20;
  std::uint64_t schedules = 0;  // limit for each history; 0: none, but 100 for pct and random
  std::uint64_t seed = 1;       // seed of the first history, and of random schedules
  // The limit at each crash point. If all servers fail, it limits recoveries, each of which covers
  // many images; otherwise it limits images. The first image keeps least, the second most. 0 means
  // no limit, and is allowed only if all servers fail.
  std::uint64_t recoveries = 2;
  // 1: the power of all servers fails once. 2: power fails twice, each time that of all servers or
  // that of a single one, which is back at once or stays away for a while. In histories with even
  // seeds the other servers give up that server before it is back.
  std::uint32_t failures = 1;
  std::uint64_t stride = 1;  // with two failures: tries every stride-th crash point of each
  unsigned threads = 0;      // 0: as many as there are cores
  // Called before each run with the share that is done, from 0 to 1, by one thread at a time. An
  // exception that it throws ends the exploration.
  std::function<void(double share)> progress{};
  // Ends the shrinking of a finding early; see ShrinkLimits::stop.
  std::function<bool()> stop{};
};

struct ScheduleResult {
  std::uint64_t histories = 0;
  std::uint64_t schedules = 0;
  std::uint64_t failures = 0;  // runs with a failure, or with two
  // The first run that kept less than expected, made simpler; the exploration ends with it.
  std::optional<SoakFinding> finding{};

  // For `pct` (strategies::Pct). `choices` is the largest k of all histories: the number of single
  // delays from which a schedule chooses. `probability` is the least of all histories: the
  // probability that one schedule has a given set of depth - 1 delays. PCT's n does not occur:
  // tasks and threads have no priorities, since their times decide which is next.
  std::uint64_t choices = 0;
  double probability = 1;
};

// Runs the system of `one` in its setting. A run that keeps less than `one.expected` is a finding.
ScheduleResult explore_schedules(const SoakCase& one, const sim::Profile& profile,
                                 const ScheduleOptions& options);

}  // namespace perdura::explore
