// How much memory this process may still allocate, so that a point that needs more is refused
// instead of being killed while it runs, along with other processes on the machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "platform/base/units.h"

namespace perdura::harness {

struct AvailableMemory {
  Bytes bytes = 0;
  std::string of;  // "this machine", or the cgroup whose limit is nearer
};

// The least of what the kernel says is available without swapping (MemAvailable) and what the
// limits of this process' cgroups, of version 1 or 2, leave; files that the kernel can drop count
// as free. Nothing if the kernel does not tell. `root` is where /proc and /sys are.
std::optional<AvailableMemory> available_memory(const std::filesystem::path& root = "/");

// "1.5 GiB", "20 MiB".
std::string memory_text(Bytes bytes);

}  // namespace perdura::harness
