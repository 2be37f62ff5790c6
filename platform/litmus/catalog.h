// The litmus tests of platform/litmus/tests, which are compiled into the program.
#pragma once

#include <vector>

#include "platform/litmus/litmus.h"

namespace perdura::litmus {

const std::vector<Litmus>& catalog();

}  // namespace perdura::litmus
