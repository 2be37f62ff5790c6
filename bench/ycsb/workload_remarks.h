// What a workload file asks for and a run does in another way.
#pragma once

#include <string>
#include <vector>

#include "harness/run/point.h"

namespace perdura::bench {

// One line each, with what is done instead and how to have what was asked for; each only once,
// however many points it concerns. What a file says and a run does anyway is not mentioned.
std::vector<std::string> remarks_on_workloads(const std::vector<harness::Point>& points);

}  // namespace perdura::bench
