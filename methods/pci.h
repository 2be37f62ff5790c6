// Reads from the configuration space of a PCI Express device how its writes reach memory: whether
// they may be reordered, and whether its root port lets them allocate lines in the last-level cache
// (DDIO). Only root may read more than its first 64 bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "methods/detection.h"

namespace perdura::methods {

// The folder below /sys/devices to which /sys/class/infiniband/NAME/device refers; nullopt for a
// device that is not on PCI, such as a software device.
std::optional<std::filesystem::path> pci_device_of(const std::filesystem::path& device);
// The root port of the processor through which the device is connected.
std::optional<std::filesystem::path> root_port_of(const std::filesystem::path& pci_device);

// True if the device may send writes with relaxed ordering (PCI Express Base Specification, Device
// Control). In a virtual function the bit has no meaning: the bit of its physical function applies
// to both (Single Root I/O Virtualization). To a guest a virtual function looks like a device of
// its own, so a cleared bit proves nothing there.
Detected<bool> relaxed_ordering_of(const std::filesystem::path& pci_device, bool in_guest = false);
// True if the root port's writes allocate lines in the cache. Known only for Intel Xeon Scalable
// processors of the first and second generation, whose register is documented (perfctrlsts_0,
// use_allocating_flow_wr).
Detected<bool> allocating_writes_of(const std::filesystem::path& root_port);

}  // namespace perdura::methods
