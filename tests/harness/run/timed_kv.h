// A key-value system whose service times are known to the picosecond, on `sim` with clients that
// poll: operations are served one after the other, in the order in which they come, or all at once.
// Its parameters:
//
//   distribution  of the service times: 0 constant, 1 exponential, 2 bimodal (one in a hundred
//   takes
//                 a hundred times as long)
//   service_ns    their mean; of a bimodal one the shorter
//   in_parallel   1: operations do not wait for each other
//   stall_ms      at the beginning of each second the store stands still for so long
//   settling_ms   service times are twice as long at time 0 and fall until then, evenly; service
//                 times that grow in place of that if settling_ms is 0 and growing is 1
//   growing       service times are longer by the mean every 10 ms
#pragma once

#include <vector>

#include "services/kv/kv.h"

namespace perdura::test {

extern const kv::KvSystem kTimedKv;

// What was served, in the order in which it came; emptied when a partition is opened.
struct TimedOperation {
  Time start;  // when it came
  Picoseconds service;
};
const std::vector<TimedOperation>& timed_operations();

}  // namespace perdura::test
