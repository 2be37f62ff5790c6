// Probes of properties that only real memory has: page sizes and several NUMA nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/probe/probe.h"

namespace perdura::bench {

// The choices of memory that this host offers.
struct HostMemory {
  std::uint32_t cores = 1;             // the number that this process may use
  std::uint32_t core = 0;              // one of them
  std::uint32_t own_node = 0;          // the NUMA node of that core
  std::vector<std::uint32_t> nodes{};  // all NUMA nodes that have memory
  std::string no_huge_pages{};         // why there are no huge pages; empty if there are
};
HostMemory memory_of_this_host();

// Adds the probes that can run on node 0's host, and for the others the reason why they cannot.
void add_host_probes(const Effort& effort, const HostMemory& host, ProbeSet& set);

}  // namespace perdura::bench
