// What the harness itself takes of an operation of a point, on this machine and at this moment.
#pragma once

#include "harness/run/point.h"
#include "platform/runtime/task.h"

namespace perdura::bench {

// A client of the point's workload and settings performs some thousand operations on a store that
// answers at once (null_store.h), an open loop without pauses. The time of one of them, the null
// store's part included: the least that was seen of several batches, so that other work on the
// machine does not count. Takes a few milliseconds. Throws PlatformError if an operation failed.
Task<Picoseconds> harness_cost(const harness::Point& point);

}  // namespace perdura::bench
