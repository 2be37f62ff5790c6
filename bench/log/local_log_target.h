// The baseline of remote logs: the client's own CPU appends to a log in its node's persistent
// memory, in the way of libpmemlog (systems/rpc_log/local_log.h).
#pragma once

#include <memory>

#include "bench/log/log_target.h"
#include "services/service.h"

namespace perdura::bench {

extern const services::SystemInfo kLocalLog;

std::unique_ptr<LogTarget> local_log_target(const services::LogConfig& config);

}  // namespace perdura::bench
