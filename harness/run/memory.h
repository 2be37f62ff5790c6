// Determines how much memory this process may still allocate, so that a point that needs more is
// refused instead of being killed while it runs, along with other processes on the machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "platform/base/units.h"

namespace perdura::harness {

struct AvailableMemory {
  Bytes bytes = 0;
  std::string of;  // "this machine", or the cgroup whose limit is lower
};

// The minimum of what the kernel reports as available without swapping (MemAvailable) and what the
// limits of this process's cgroups, version 1 or 2, leave; droppable files count as free. Returns
// nullopt if the kernel does not report it. `root` contains /proc and /sys.
std::optional<AvailableMemory> available_memory(const std::filesystem::path& root = "/");

// Formats as "1.5 GiB" or "20 MiB".
std::string memory_text(Bytes bytes);

}  // namespace perdura::harness
