// A thread of a CPU, as the memory that it stores to knows it (platform/pmem/sim/timeline.h).
#pragma once

#include "platform/base/units.h"

namespace perdura::sim {

struct StoringThread {
  // Another thread has seen a store that becomes visible at this time, ahead of the engine's. So
  // that store happens, with all that the thread did before it, even if the thread's process dies
  // first.
  Time seen_until{};
};

}  // namespace perdura::sim
