// The parameters of points of replicated memory (experiments/README.md). This table is the only
// list of them.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> memory_parameters();

}  // namespace perdura::bench
