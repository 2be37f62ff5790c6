// Probes of what only real memory has: page sizes and several NUMA nodes.
#pragma once

#include "bench/probe/probe.h"

namespace perdura::bench {

// Adds those that this machine can answer, and why not the others.
void add_host_probes(const Effort& effort, ProbeSet& set);

}  // namespace perdura::bench
