// The YCSB workload of a point: the workload file that it names, with the settings that its
// experiment overrides.
#pragma once

#include <string>

#include "bench/ycsb/workload_spec.h"
#include "harness/config/locations.h"
#include "harness/run/point.h"

namespace perdura::bench {

struct PointWorkload final : harness::PreparedPoint {
  ycsb::WorkloadSpec spec;
  std::string name;                // as it appears in results
  ycsb::Overrides overrides = {};  // settings of the experiment that replace the file's
};

// For Driver::prepare, of drivers whose points have the parameters workload, records, operations,
// warmup, key_size and value_size. Throws UsageError.
void prepare_workload(harness::Point& point, const harness::Locations& locations);

const ycsb::WorkloadSpec& workload_of(const harness::Point& point);
const std::string& workload_name(const harness::Point& point);
const ycsb::Overrides& overrides_of(const harness::Point& point);

// Returns a workload that belongs to this point alone and may be changed: a copy of the one that
// the point has, or a new one.
PointWorkload& own_workload(harness::Point& point);

// The number of all operations of a point, including those of loading and warm-up.
std::uint64_t all_operations(const harness::Point& point);

}  // namespace perdura::bench
