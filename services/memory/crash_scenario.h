// The histories in which failures of replicated memory are tried: threads of an application on the
// primary store to cells of the region and sync some of them at a time, a reader on the mirror
// looks at all of them, and what is left after the failure is compared with what was synced.
#pragma once

#include <memory>
#include <span>

#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/memory/memory.h"

namespace perdura::services {

std::span<const CrashSchedule> memory_schedules();

// `system` must outlive the runs.
CrashHistory memory_crash_history(const MemorySystem& system, const CrashSetup& setup);

// A scenario drawn from choices: the application's threads map the region again after each failure
// and go on.
std::unique_ptr<CrashScenario> memory_generated_scenario(const MemorySystem& system,
                                                         const CrashSetup& setup, pmem::Tape& tape,
                                                         std::uint32_t failures);

}  // namespace perdura::services
