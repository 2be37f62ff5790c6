// Determines which kind of memory a DAX device has. Linux offers as DAX devices not only persistent
// memory but any memory that the firmware has set aside, such as high-bandwidth memory and volatile
// CXL memory, and it can also use a device's memory as ordinary RAM. All of them look alike below
// /dev; the device's position in the tree below /sys/devices tells them apart.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace perdura::pmem::mapped {

struct DaxMemory {
  // True if data that a CPU has flushed there survives a power failure; nullopt if that is not
  // known.
  std::optional<bool> persistent{};
  std::string reason{};  // such as "dax0.0 is memory of hmem.0, which is volatile"
};

// `device` is the device's folder below /sys, or a symbolic link to it, such as
// /sys/bus/dax/devices/dax0.0 or /sys/dev/char/250:1.
DaxMemory dax_memory_of(const std::filesystem::path& device);

}  // namespace perdura::pmem::mapped
