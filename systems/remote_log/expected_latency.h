// The expected latency of an update by a method of remote persistence, on the model of a testbed.
#pragma once

#include "methods/chooser.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::systems::remote_log {

// The mean latency of some updates of the needs' sizes, made one after the other with polling on
// both sides. Simulates two nodes of the profile, with the given features of the devices, and with
// the DDIO setting and the receive buffers of the configuration. Throws UsageError if the sizes are
// impossible.
Picoseconds expected_latency(const methods::Method& method, sim::Profile profile,
                             const methods::Configuration& configuration,
                             const methods::UpdateNeeds& needs,
                             const methods::DeviceFeatures& features);

}  // namespace perdura::systems::remote_log
