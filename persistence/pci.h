// What the configuration space of a PCI Express device says of the way its writes take: whether
// they may be relaxed in order, and whether its root port lets them allocate lines in the
// last-level cache (DDIO). Reading more than its first 64 bytes takes root.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "persistence/detection.h"

namespace perdura::persistence {

// The folder below /sys/devices of what /sys/class/infiniband/NAME/device names; nothing for a
// device that is none of PCI, such as one in software.
std::optional<std::filesystem::path> pci_device_of(const std::filesystem::path& device);
// The port of the processor behind which it is.
std::optional<std::filesystem::path> root_port_of(const std::filesystem::path& pci_device);

// Whether it may send writes with relaxed ordering (PCI Express Base Specification, Device
// Control).
Detected<bool> relaxed_ordering_of(const std::filesystem::path& pci_device);
// Whether the root port's writes allocate in the cache: of Intel Xeon Scalable processors of the
// first and second generation, whose register for it is known (perfctrlsts_0,
// use_allocating_flow_wr).
Detected<bool> allocating_writes_of(const std::filesystem::path& root_port);

}  // namespace perdura::persistence
