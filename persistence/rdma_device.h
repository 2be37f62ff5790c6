// What an RDMA device of this machine has of the operations that methods of remote persistence use
// ("Correct, Fast Remote Persistence", section 3.4), as its driver tells ibv_query_device_ex(3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "persistence/chooser.h"

namespace perdura::persistence {

// Of device_cap_flags_ex.
DeviceFeatures features_of_flags(std::uint64_t device_cap_flags_ex);

// Asked for a device by its name below /sys/class/infiniband; or, in one line, why it does not say.
using FeaturesOf =
    std::function<tl::expected<DeviceFeatures, std::string>(const std::string& device)>;

// By libibverbs. Opens the device, which takes access to /dev/infiniband.
tl::expected<DeviceFeatures, std::string> query_rdma_device(const std::string& device);

}  // namespace perdura::persistence
