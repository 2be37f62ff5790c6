// What points of key-value systems may say (experiments/README.md). One entry each, and nowhere
// another list.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> kv_parameters();

}  // namespace perdura::bench
