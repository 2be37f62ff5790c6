// Mounts a file system on a directory by the kernel's FUSE, so that any program can use it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mount/source.h"

namespace perdura::mount {

struct MountOptions {
  std::string directory;  // the mount point, which must be empty
  std::string options{};  // options of mount(8): "ro,noatime"; with "ro" the source is only read
  std::uint32_t threads = 0;  // 0: four for each core, at most 32
  std::string trace{};        // the file that gets the accesses of programs; empty: none does
  // Called as soon as programs can use the directory.
  std::function<void()> ready = [] {};
};

// Returns true if this build can mount.
bool is_available();

// Serves the mount until it is unmounted, or until SIGINT, SIGTERM or SIGHUP. Throws UsageError,
// before anything is changed, if the source, the directory or the trace cannot be used; PlatformError
// after the unmount if not all accesses are in the trace.
void serve(const fs::FsSystem& system, const Source& source, const MountOptions& options);

}  // namespace perdura::mount
