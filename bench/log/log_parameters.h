// The parameters of points of the driver `log` (experiments/README.md). This table is the only list
// of them.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> log_parameters();

}  // namespace perdura::bench
