// Lists the crash points of a run between two failures of its servers: the instants just before
// something changes. Where the power of all servers fails, two things count as changes: a change of
// what the failure could leave in memory, and progress of a client. Only the last instant of an
// interval without changes is listed. Where anything else fails, the rest of the system goes on, so
// every event counts as a change.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

class CrashPointList {
 public:
  enum class Which : std::uint8_t { where_memory_changes, at_every_event };

  // Crash points before `begins` first returns true are left out. `failures`: how many failures of
  // servers there are before the first of the crash points. `scenario` and `platform` must outlive
  // this; the run must not have begun.
  CrashPointList(Which which, const services::CrashScenario& scenario, sim::SimPlatform& platform,
                 std::function<bool()> begins, std::uint32_t failures);

  std::uint32_t failures() const { return failures_; }
  // Must be called between any two events of the run, because a client may have made progress in
  // the last one. `failures` is the number of server failures so far.
  void look(std::uint32_t failures);
  // To be called at the failure that ends the list, or at the end of the run.
  void end();

  const std::set<Time>& points() const { return points_; }

 private:
  Time now() const { return platform_.engine().now(); }
  void add_before(Time when);

  Which which_;
  const services::CrashScenario& scenario_;
  sim::SimPlatform& platform_;
  std::function<bool()> begins_;
  std::uint32_t failures_;
  std::optional<Time> from_;
  std::uint64_t steps_ = 0;  // the number of steps that clients have made
  std::set<Time> points_;
};

}  // namespace perdura::explore
