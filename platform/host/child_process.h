// The parent's side of child processes on the real platforms: starts the program, passes its order
// and memory on, and notices its end.
#pragma once

#include <memory>
#include <string>

#include "platform/child_process.h"
#include "platform/runtime/host_clock.h"

namespace perdura {

// The implementation of ChildProcesses::start_child(). `clock`: the platform's; `program`: the
// file's name; `path`: the path of the region's file, or below a DAX device.
Task<std::unique_ptr<ChildProcess>> start_host_child(runtime::HostClock clock, std::string program,
                                                     std::string path, ChildOrder order);

// Throws PlatformError, with the reason, if no child of this program can be started, as far as that
// can be determined without starting one.
void check_host_child(const std::string& program, Isolation isolation);

}  // namespace perdura
