// Measures the harness's own overhead per operation of a point, on this machine and at this moment.
#pragma once

#include "harness/run/point.h"
#include "platform/runtime/task.h"

namespace perdura::bench {

// A client with the point's workload and settings performs some thousand operations on a store that
// answers at once (null_store.h); an open loop runs without pauses. Returns the time per operation,
// including the null store's part, as the minimum over several batches, so that other work on the
// machine does not count. Takes a few milliseconds. Throws PlatformError if an operation failed.
Task<Picoseconds> harness_cost(const harness::Point& point);

}  // namespace perdura::bench
