// The sections of a diagnosis. Internal.
#pragma once

#include <vector>

#include "bench/doctor/doctor.h"
#include "bench/doctor/tree.h"
#include "persistence/detection.h"

namespace perdura::bench {

inline constexpr const char* kUnknown = "unknown";

std::vector<Finding> persistence_findings(const Host& host, const Tree& tree,
                                          const persistence::Detection& found);
std::vector<Finding> rdma_findings(const Host& host, const Tree& tree,
                                   const persistence::Detection& found);
std::vector<Finding> host_findings(const Tree& tree);

inline const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace perdura::bench
