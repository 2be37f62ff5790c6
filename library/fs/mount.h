// A file system that any program can use: mounted on a directory by the kernel's FUSE.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "library/fs/place.h"

namespace perdura::fs::fuse {

struct MountOptions {
  std::string directory;      // an empty one
  std::string options{};      // more of mount(8): "ro,noatime"; with "ro" the place is only read
  std::uint32_t threads = 0;  // 0: four for each core, at most 32
  // Called when programs can use the directory.
  std::function<void()> ready = [] {};
};

// Whether this build can mount.
bool is_available();

// Serves the mount until it is unmounted, or until SIGINT, SIGTERM or SIGHUP. Throws UsageError if
// the place or the directory cannot be used, before anything is changed.
void serve(const FsSystem& system, const Place& place, const MountOptions& options);

}  // namespace perdura::fs::fuse
