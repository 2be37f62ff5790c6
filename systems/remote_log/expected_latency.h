// How long an update takes by a method of remote persistence, on the model of a testbed.
#pragma once

#include "persistence/chooser.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {

// The mean of some updates of the needs' sizes, one after the other, with polling on both sides, on
// two nodes of the profile with the devices' features and the configuration's DDIO and receive
// buffers. Throws UsageError if the sizes are impossible.
Picoseconds expected_latency(const persistence::Method& method, sim::Profile profile,
                             const persistence::Configuration& configuration,
                             const persistence::UpdateNeeds& needs,
                             const persistence::DeviceFeatures& features);

}  // namespace perdura::bench
