// The entry of the log by RPC in the table of systems.
#pragma once

#include "services/log/log.h"

namespace perdura::systems {

extern const services::LogSystem kRpcLog;

}  // namespace perdura::systems
