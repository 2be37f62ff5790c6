// The parameters of points of key-value systems (experiments/README.md). This table is the only
// list of them.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> kv_parameters();

}  // namespace perdura::bench
