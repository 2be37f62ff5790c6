// The histories of a log in which failures are tried: a client appends to a log of few records,
// which wraps around several times; after the failures, the inspector reads the applied records.
#pragma once

#include <memory>
#include <span>

#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/log/log.h"

namespace perdura::services {

std::span<const CrashSchedule> log_schedules();

// `system` must outlive the runs.
CrashHistory log_crash_history(const LogSystem& system, const CrashSetup& setup);

// A scenario drawn from the tape: the client reconnects after each failure and goes on.
std::unique_ptr<CrashScenario> log_generated_scenario(const LogSystem& system,
                                                      const CrashSetup& setup, pmem::Tape& tape,
                                                      std::uint32_t failures);

}  // namespace perdura::services
