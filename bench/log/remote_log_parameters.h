// The parameters of points of RemoteLog (experiments/README.md), and those of [systems.METHOD].
// These tables are the only lists of them.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> remote_log_parameters();
std::span<const Parameter> method_parameters();

}  // namespace perdura::bench
