// The histories in which power failures of key-value systems are tried: a small store and two
// clients that use the same few keys, as a schedule prescribes.
#pragma once

#include <span>

#include "services/crash.h"
#include "services/kv/kv.h"

namespace perdura::services {

std::span<const CrashSchedule> kv_schedules();

// `system` must outlive the runs.
CrashHistory kv_crash_history(const systems::KvSystem& system, const CrashSetup& setup,
                              const CrashSchedule& schedule);

}  // namespace perdura::services
