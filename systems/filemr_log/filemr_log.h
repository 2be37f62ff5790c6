// The entry of the log of FileMR in the table of systems.
#pragma once

#include "services/log/log.h"

namespace perdura::systems {

extern const services::LogSystem kFileMrLog;

}  // namespace perdura::systems
