// Probes of what only real memory has: page sizes and several NUMA nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/probe/probe.h"

namespace perdura::bench {

// What the memory of this host can be.
struct HostMemory {
  std::uint32_t cores = 1;             // that this process may use
  std::uint32_t core = 0;              // one of them
  std::uint32_t own_node = 0;          // of NUMA, which that core is of
  std::vector<std::uint32_t> nodes{};  // all that have memory
  std::string no_huge_pages{};         // why there are none; empty: there are
};
HostMemory memory_of_this_host();

// Adds those that node 0's host can answer, and why not the others.
void add_host_probes(const Effort& effort, const HostMemory& host, ProbeSet& set);

}  // namespace perdura::bench
