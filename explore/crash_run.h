// One run of a service's crash scenario on the simulation: servers, clients, optionally a failure
// (of some of the servers, of a client, or of a connection), recovery, and an inspector that reads
// what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "explore/scenario_run.h"
#include "explore/what_fails.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

class CrashRun {
 public:
  // `scenario` must outlive this. `failing`: what fails, if there is a failure.
  CrashRun(services::CrashScenario& scenario, const sim::Profile& profile,
           const pmem::PersistenceModel& model, WhatFails failing);
  CrashRun(const CrashRun&) = delete;
  CrashRun& operator=(const CrashRun&) = delete;

  // `observer` is told what happens; it must outlive this. Must be called before run().
  void observe(sim::RunObserver& observer) { run_.platform().observe(observer); }

  // Runs the scenario to its end, with the failure at the crash point that `failure` selects. If
  // the image that the failure leaves is in `known`, the run stops there: what would follow is the
  // same as in an earlier run.
  void run(sim::Failure& failure, const std::set<std::uint64_t>& known);

  // Runs the scenario up to a failure of the power of all servers, which stay down, and until no
  // client is left: those that the failure has not ended after a while are killed. Calls `look` at
  // the failure, while the power is still on.
  void run_to_failure(sim::Failure& failure, const std::function<void(sim::SimPlatform&)>& look);

  std::optional<Time> failed_at() const { return failed_at_; }
  // A digest of the crash image and of the place where it was taken; valid only after a failure.
  std::uint64_t image() const { return image_; }
  bool image_was_known() const { return image_was_known_; }

 private:
  void start(sim::Failure& failure);
  bool can_fail() const;
  void fail(pmem::Choices& choices);
  std::pair<fabric::Address, fabric::Address> breaking_ends() const;

  services::CrashScenario& scenario_;
  WhatFails failing_;
  std::optional<Time> failed_at_;
  std::uint64_t image_ = 0;
  bool image_was_known_ = false;
  ScenarioRun run_;
};

}  // namespace perdura::explore
