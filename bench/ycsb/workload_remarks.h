// Remarks on what a workload file asks for and a run does differently.
#pragma once

#include <string>
#include <vector>

#include "harness/run/point.h"

namespace perdura::bench {

// Returns one line per remark, which says what is done instead and how to get what the file asks
// for. Each remark appears once, however many points it concerns. A setting that a run obeys is not
// mentioned.
std::vector<std::string> remarks_on_workloads(const std::vector<harness::Point>& points);

}  // namespace perdura::bench
