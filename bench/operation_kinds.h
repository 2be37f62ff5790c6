// The kinds of operations of YCSB's workloads, as results name them.
#pragma once

#include <string>

#include "bench/ycsb/workload_spec.h"
#include "harness/results/measurement.h"

namespace perdura::bench {

inline harness::OperationKind kind_of(ycsb::OperationKind kind) {
  return {static_cast<std::uint32_t>(kind), std::string(to_string(kind))};
}

}  // namespace perdura::bench
