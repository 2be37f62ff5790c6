// A trace does not say where in memory the data of its files is. Here a file system decides that:
// it executes what a trace writes, in the order of the trace, and then tells the extents of each
// file ("Building Distributed Systems with Non-Volatile Main Memories and RDMA Networks", section
// 5.4.2).
//
// Files are never deleted, since traces do not say that, and each has what the trace has left.
#pragma once

#include <vector>

#include "bench/trace/translation_replay.h"
#include "services/fs/fs.h"

namespace perdura::bench {

// Runs the platform, whose node 0 gets a new file system of `size` bytes. Returns the extents of
// each file by its number in the trace. Throws UsageError if the data does not fit, and if the
// system cannot map files.
std::vector<std::vector<FileExtent>> place_files(Platform& platform, const fs::FsSystem& system,
                                                 Bytes size, fs::TraceReader& trace);

}  // namespace perdura::bench
