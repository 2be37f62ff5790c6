// Determines which operations of remote-persistence methods an RDMA device of this machine supports
// ("Correct, Fast Remote Persistence", section 3.4), as its driver reports by
// ibv_query_device_ex(3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "methods/chooser.h"

namespace perdura::methods {

// The features in a value of device_cap_flags_ex, which does not cover atomics.
DeviceFeatures features_of_flags(std::uint64_t device_cap_flags_ex);

// Returns the features of a device, given its name below /sys/class/infiniband, or one line with
// the reason why they are unknown.
using FeaturesOf =
    std::function<tl::expected<DeviceFeatures, std::string>(const std::string& device)>;

// Queries libibverbs. Opens the device, which requires access to /dev/infiniband.
tl::expected<DeviceFeatures, std::string> query_rdma_device(const std::string& device);

}  // namespace perdura::methods
