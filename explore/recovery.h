// Recovery and inspection alone: new machines with the persistent memory that a power failure has
// left, the servers of a scenario, and its inspector. What was before the failure is not run again.
#pragma once

#include <deque>
#include <vector>

#include "platform/pmem/model/lazy_images.h"
#include "platform/pmem/sim/crashed_memory.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// The images that a failure of the power of all servers may leave, by server. To be called at the
// failure, while the power is still on.
std::vector<pmem::ImageSpace> images_left(sim::SimPlatform& platform, NodeId servers);

// The persistent memory that such a failure leaves, by server.
struct LeftMemory {
  // `images` are those of images_left() at the same failure.
  LeftMemory(sim::SimPlatform& platform, std::vector<pmem::ImageSpace> images);

  std::vector<pmem::ImageSpace> spaces;
  std::deque<pmem::sim::CrashedMemory> memories;  // what all images have in common
};

// Recovers and inspects. `scenario` is at the state that it keeps; it notes what the inspector
// finds, problems included. `begin` is the virtual time at which recovery begins, after that of all
// clients. `memories` are those of the servers' machines.
void recover(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
             std::deque<pmem::sim::CrashedMemory>& memories);

// Likewise, from the images of which a run of `images` has begun. `memories` are in the state
// before the first recovery, to which they are returned.
void recover_from(pmem::LazyImages& images, services::CrashScenario& scenario,
                  const sim::Profile& profile, Time begin,
                  std::deque<pmem::sim::CrashedMemory>& memories);

}  // namespace perdura::explore
