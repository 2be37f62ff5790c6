// SIGSEGV handlers, for code that protects pages and serves the faults itself.
#pragma once

#include <csignal>

namespace perdura::pmem {

// Returns true if the fault has been served, so that the access is made again. Called in the signal
// handler: it must neither allocate memory nor take locks that its thread may hold. `error`: the
// page fault's error code, as x86 defines it.
using ServeFault = bool (*)(const siginfo_t& fault, unsigned long error);
inline constexpr unsigned long kWriteFault = 2;
inline constexpr unsigned long kFetchFault = 16;

// From now on faults go to this function, and those that it does not serve to the handler that was
// set before. Code that sets a handler later must pass on the faults that are not its own, too.
// Throws PlatformError.
void serve_faults(ServeFault serve);

}  // namespace perdura::pmem
