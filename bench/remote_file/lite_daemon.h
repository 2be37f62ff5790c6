// The emulation of LITE: a daemon of the client's node, on a thread of its own, WRITEs what the
// application puts into memory that both share (emulations.h).
#pragma once

#include <memory>

#include "bench/remote_file/remote_file.h"

namespace perdura::bench {

// Starts the daemon on the thread's node. Throws UsageError if the platform has no rings
// (platform/message_ring.h), PlatformError if the file's server cannot be reached.
Task<std::unique_ptr<FileWriter>> connect_by_daemon(Thread& thread,
                                                    const RemoteFileOptions& options);

}  // namespace perdura::bench
