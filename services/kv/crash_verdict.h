// Which guarantees a history of keys and values kept.
#pragma once

#include <string>

#include "services/crash.h"
#include "services/kv/history/history.h"

namespace perdura::services {

// `history` is what clients did; the operations of `reader` began after the failure, and it has
// read every key. `problem`: why it could not, if so.
CrashVerdict judge_crash(const history::History& history, Time failed_at, std::uint32_t reader,
                         const std::string& problem);

}  // namespace perdura::services
