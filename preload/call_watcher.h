// The part of the primary that examines system calls which the kernel holds for it (call_filter.h),
// so that sync points do not depend on the preloaded library being in a program, or on its calls
// passing the C library:
//
//   fsync, msync, sync, ...       a sync point, if it is of the replicated file; then the kernel
//                                 does its part
//   mmap, shared                  the file is replicated from now on, and one more process is known
//                                 to use it
//   open with O_SYNC, O_DSYNC;    refused for this file, since what is written would have to be
//   pwritev2 with RWF_DSYNC       sent after the call, unless it is the library that does so
//
// Calls that the library itself makes to the kernel for other files arrive here, too.
#pragma once

#include <string>

namespace perdura::preload {

// Starts a thread that examines the calls until all programs have ended. They come from the process
// that sends to this socket (CallFilter::begin), if one does before it is closed. `file`: the
// primary's, whose requests (requests.h) are answered by other threads of this process.
void watch_calls(const std::string& file, int socket);

}  // namespace perdura::preload
