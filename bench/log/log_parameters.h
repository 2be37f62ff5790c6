// What points of RemoteLog may say (experiments/README.md), and what [systems.METHOD] may. One
// entry each, and nowhere another list.
#pragma once

#include <span>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> log_parameters();
std::span<const Parameter> method_parameters();

}  // namespace perdura::bench
