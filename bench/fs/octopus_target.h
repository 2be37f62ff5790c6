// Octopus as a system of the driver. It is used by full paths and has no inodes, so it is not in the
// table of the service `fs`; the driver adds it.
#pragma once

#include <memory>

#include "bench/fs/target.h"
#include "harness/run/point.h"
#include "services/fs/fs.h"

namespace perdura::bench {

// A thread's access to a mounted file system, by a session, or by paths if it is Octopus.
std::unique_ptr<FileTarget> create_target(fs::FileSystem& files, Thread& thread);

// Throws UsageError, without the place, if the system of the point is Octopus and cannot do the
// workload: files and directories have a fixed size, and nothing can be renamed.
void check_octopus(const harness::Point& point, const fs::FsConfig& config);

}  // namespace perdura::bench
