// SIGSEGV, for those who protect pages and serve the faults themselves.
#pragma once

#include <csignal>

namespace perdura::pmem {

// True if the fault has been served, so that the access is made again. Called in the handler: it
// neither allocates memory nor takes locks that its thread may hold. `error`: of the page fault, as
// x86 says it.
using ServeFault = bool (*)(const siginfo_t& fault, unsigned long error);
inline constexpr unsigned long kWriteFault = 2;
inline constexpr unsigned long kFetchFault = 16;

// Faults go to this function from now on, and those that it does not serve to the handler that was
// set before. Who sets one later must hand on what is not theirs, too. Throws PlatformError.
void serve_faults(ServeFault serve);

}  // namespace perdura::pmem
