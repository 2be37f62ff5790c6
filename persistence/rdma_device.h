// Which operations of methods of remote persistence an RDMA device of this machine supports
// ("Correct, Fast Remote Persistence", section 3.4), as its driver reports by
// ibv_query_device_ex(3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "persistence/chooser.h"

namespace perdura::persistence {

// The features in a value of device_cap_flags_ex, which says nothing of atomics.
DeviceFeatures features_of_flags(std::uint64_t device_cap_flags_ex);

// Returns the features of a device, given its name below /sys/class/infiniband, or one line that
// says why they are unknown.
using FeaturesOf =
    std::function<tl::expected<DeviceFeatures, std::string>(const std::string& device)>;

// Asks libibverbs. Opens the device, which takes access to /dev/infiniband.
tl::expected<DeviceFeatures, std::string> query_rdma_device(const std::string& device);

}  // namespace perdura::persistence
