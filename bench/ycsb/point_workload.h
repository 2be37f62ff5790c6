// The YCSB workload of a point: the file that it names, with what its experiment says instead.
#pragma once

#include <string>

#include "harness/config/locations.h"
#include "harness/run/point.h"
#include "harness/workload/workload_spec.h"

namespace perdura::bench {

struct PointWorkload final : harness::PreparedPoint {
  workload::WorkloadSpec spec;
  std::string name;  // as in results
};

// For Driver::prepare, of drivers whose points have the parameters workload, records, operations,
// warmup, key_size and value_size. Throws UsageError.
void prepare_workload(harness::Point& point, const harness::Locations& locations);

const workload::WorkloadSpec& workload_of(const harness::Point& point);
const std::string& workload_name(const harness::Point& point);

// Of this point alone, to be changed: a copy of what it has, or a new one.
PointWorkload& own_workload(harness::Point& point);

// Loading and warming up, too.
std::uint64_t all_operations(const harness::Point& point);

}  // namespace perdura::bench
