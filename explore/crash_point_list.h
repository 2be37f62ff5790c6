// Lists the crash points of a run between two failures of its servers: the instants just before
// something changes. Where the power of all servers fails, a change is one that the failure could
// leave, or progress of a client: an interval without either is listed as its last instant only. If
// something else fails, the rest goes on, and any event may be a change.
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
  // To be called between all events of the run, after so many failures: a client may have gone on
  // in the last one.
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
  std::uint64_t steps_ = 0;  // that clients have made
  std::set<Time> points_;
};

}  // namespace perdura::explore
