// Recovery and inspection alone: new machines with the persistent memory that a power failure has
// left, the servers of a scenario, and its inspector. What was before the failure is not run again.
#pragma once

#include <deque>

#include "explore/patience.h"
#include "platform/pmem/sim/crashed_memory.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

class Recovery {
 public:
  // `scenario` is at the state that it keeps, and `memories` are those of its servers' machines;
  // both must outlive this. Begins at this virtual time, which must come after that of all clients.
  Recovery(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
           std::deque<pmem::sim::CrashedMemory>& memories);
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;
  ~Recovery();

  // The scenario notes the findings of the inspector, problems included.
  void run();

 private:
  Task<> serve(Thread& thread);
  Task<> inspect(Thread& thread);

  services::CrashScenario& scenario_;
  Patience patience_;
  // Declared last, so destroyed first: its threads use the members above.
  sim::SimPlatform platform_;
};

// Recovers from the images of which a run of `images` has begun, and inspects. `memories` are those
// of its spaces, in the state before the first recovery, to which they are returned.
void recover_from(pmem::LazyImages& images, services::CrashScenario& scenario,
                  const sim::Profile& profile, Time begin,
                  std::deque<pmem::sim::CrashedMemory>& memories);

}  // namespace perdura::explore
