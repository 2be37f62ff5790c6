// Calls what a plan has made to wait for an event of its run (Trigger in plan.h): it counts the
// events since the servers began to run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "explore/plan.h"
#include "platform/sim/sim_platform.h"

namespace perdura::explore {

class Triggers {
 public:
  // `platform` must outlive this.
  explicit Triggers(sim::SimPlatform& platform) : platform_(platform) {}

  // The servers begin to run: nothing is awaited anymore, and nothing has been counted yet.
  void begin();
  void at(const Trigger& trigger, std::function<void()> then);
  void count(Counted event, std::uint64_t number, Time now);
  // An operation begins or ends at this time, which count() has to be told, too.
  void note_change(Time when) { changed_at_ = when; }

  std::uint64_t counted(Counted event) const;
  // How long ago the last operation began or ended, or the servers began to run.
  Picoseconds since_change() const { return platform_.engine().now() - changed_at_; }

 private:
  sim::SimPlatform& platform_;
  std::map<Counted, std::uint64_t> counts_;
  std::vector<std::pair<Trigger, std::function<void()>>> awaited_;
  Time changed_at_{};
};

}  // namespace perdura::explore
