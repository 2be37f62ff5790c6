// The histories in which failures of stores of pools are tried: a small shard, and clients that use
// a few pools and keys in common, as prescribed by a plan (crash_plan.h).
#pragma once

#include <memory>
#include <span>

#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/objects/objects.h"

namespace perdura::services {

std::span<const CrashSchedule> objects_schedules();

// `system` must outlive the runs.
CrashHistory objects_crash_history(const objects::System& system, const CrashSetup& setup,
                                   const CrashSchedule& schedule);

// A scenario drawn from choices (crash_plan.h): clients connect again after each failure.
std::unique_ptr<CrashScenario> objects_generated_scenario(const objects::System& system,
                                                          const CrashSetup& setup, pmem::Tape& tape,
                                                          std::uint32_t failures);

}  // namespace perdura::services
