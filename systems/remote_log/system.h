// RemoteLog as a system of the service `log`: "Correct, Fast Remote Persistence", Kashyap, Marathe,
// Qin, Byan, Min; section 4.1.
#pragma once

#include "services/log/log.h"

namespace perdura::systems {

extern const services::LogSystem kRemoteLog;

}  // namespace perdura::systems
