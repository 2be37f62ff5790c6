// How long a run waits for a system that has been restarted. One that answers nobody anymore must
// end with a message, not with the patience of whoever has started the exploration: a client that
// reads the same damaged bucket again and again takes a minute of real time for two virtual
// seconds.
#pragma once

#include <cstdint>
#include <functional>

#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

class Patience {
 public:
  // `scenario` must outlive this, and this the platform of begin().
  explicit Patience(services::CrashScenario& scenario) : scenario_(scenario) {}
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // To be called when an operation begins or ends, or a server has opened what it holds.
  void note_progress() { ++progress_; }
  // From now on: when an operation has not ended for a while, nor any other, or the run has not for
  // a long time, notes that as the scenario's problem and calls `give_up`, which ends the threads
  // that wait.
  void begin(sim::SimPlatform& platform, std::function<void()> give_up);

 private:
  void wait(sim::SimPlatform& platform, Time longest);

  services::CrashScenario& scenario_;
  std::function<void()> give_up_;
  std::uint64_t progress_ = 0;
};

}  // namespace perdura::explore
