// The histories in which failures of key-value systems are tried: a small store, and clients that
// use the same few keys as a plan prescribes (crash_plan.h).
#pragma once

#include <memory>
#include <span>

#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/kv/kv.h"

namespace perdura::services {

std::span<const CrashSchedule> kv_schedules();

// `system` must outlive the runs.
CrashHistory kv_crash_history(const kv::KvSystem& system, const CrashSetup& setup,
                              const CrashSchedule& schedule);

// A scenario drawn from choices (CrashScenario): clients connect again after each failure.
std::unique_ptr<CrashScenario> kv_generated_scenario(const kv::KvSystem& system,
                                                     const CrashSetup& setup, pmem::Tape& tape,
                                                     std::uint32_t failures);

}  // namespace perdura::services
