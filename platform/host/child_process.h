// The parent's side of child processes on the real platforms: starts the program, tells it what it
// is given, and notices its end.
#pragma once

#include <memory>
#include <string>

#include "platform/child_process.h"
#include "platform/runtime/host_clock.h"

namespace perdura {

// What ChildProcesses::start_child() does. `clock`: the platform's; `program`: the file's name;
// `path`: of the region's file, or below a DAX device.
Task<std::unique_ptr<ChildProcess>> start_host_child(runtime::HostClock clock, std::string program,
                                                     std::string path, ChildOrder order);

// Throws PlatformError: why no child of this program could be started, as far as can be seen
// without starting one.
void check_host_child(const std::string& program, Isolation isolation);

}  // namespace perdura
