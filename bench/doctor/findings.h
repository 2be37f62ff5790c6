// The sections of a diagnosis. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/doctor/doctor.h"
#include "bench/doctor/tree.h"
#include "methods/detection.h"

namespace perdura::bench {

inline constexpr const char* kUnknown = "unknown";

std::vector<Finding> persistence_findings(const Host& host, const Tree& tree,
                                          const methods::Detection& found);
std::vector<Finding> rdma_findings(const Host& host, const Tree& tree,
                                   const methods::Detection& found);
std::vector<Finding> host_findings(const Tree& tree);

// True if there is anything that may be persistent memory; nullopt if that is unknown.
std::optional<bool> has_persistent_memory(const Tree& tree, const methods::Detection& found);

// The number of devices that Linux shows in a folder, as text. A missing folder means no devices
// only if /sys is available at all.
std::string count_of(const Tree& tree, std::size_t devices);
inline constexpr const char* kNoSysfs =
    "there is no /sys/bus, which every Linux has; a container or a copy may leave it out";
inline constexpr const char* kAskOutside = "ask outside of the container, or copy all of /sys";

inline const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace perdura::bench
