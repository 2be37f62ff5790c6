// Probes of a node's memory, DRAM and persistent: how long an access takes, and how much memory
// takes in and gives out (Figures 2.2 to 2.5 of "Building Distributed Systems with Non-Volatile
// Main Memories and RDMA Networks").
#pragma once

#include "bench/probe/access.h"
#include "bench/probe/host_memory.h"
#include "bench/probe/probe.h"

namespace perdura::bench {

// All of them. `host` is null on the model, which has no page sizes.
ProbeSet memory_probes(const Effort& effort, const HostMemory* host);

// --- single ones, for tests and for benchmarks beside them

// Nanoseconds a load of a chain in [0, working set) whose lines are in that state.
enum class CacheState : std::uint8_t { hot, flushed, cold };
std::vector<double> load_latency(Platform& platform, pmem::Medium medium, Pattern pattern,
                                 CacheState state, const Effort& effort, MemoryPlace place = {});

// Nanoseconds until an 8-byte write is persistent: store, clwb and fence, or a non-temporal store
// and a fence.
std::vector<double> persist_latency(Platform& platform, pmem::Medium medium, Access access,
                                    CacheState state, const Effort& effort, MemoryPlace place = {});

// GB/s of `threads` together, each in its own part of memory.
struct Stream {
  Access access = Access::load;
  Pattern pattern = Pattern::sequential;
  Bytes size = 256;
  std::uint32_t threads = 1;
  std::uint32_t load_share = 100;  // percent; the rest of the accesses are of `access`
  MemoryPlace place{};
};
std::vector<double> bandwidth(Platform& platform, pmem::Medium medium, Stream stream,
                              const Effort& effort);

// Nanoseconds a load of a cold random chain while so many other threads stream.
std::vector<double> loaded_latency(Platform& platform, pmem::Medium medium, Stream others,
                                   const Effort& effort);

// Bytes that the media write for each byte issued, by the accounting. The platform's level must be
// `compared`.
std::vector<double> write_amplification(Platform& platform, Stream stream, const Effort& effort);

}  // namespace perdura::bench
