// Remarks on requests of a workload file that a run handles differently.
#pragma once

#include <string>
#include <vector>

#include "harness/run/point.h"

namespace perdura::bench {

// Returns one line per remark, which says what the run does instead and how to get the requested
// behavior. Each remark appears once, however many points it concerns. Settings that a run follows
// are not mentioned.
std::vector<std::string> remarks_on_workloads(const std::vector<harness::Point>& points);

}  // namespace perdura::bench
