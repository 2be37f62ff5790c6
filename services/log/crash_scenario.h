// The history of a log in which power failures are tried: a client appends to a log of few records,
// which goes around several times; after the failure, what was applied is what there is.
#pragma once

#include <span>

#include "services/crash.h"
#include "services/log/log.h"

namespace perdura::services {

std::span<const CrashSchedule> log_schedules();

// `system` must outlive the runs.
CrashHistory log_crash_history(const LogSystem& system, const CrashSetup& setup);

}  // namespace perdura::services
