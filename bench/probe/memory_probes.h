// Probes of a node's memory, DRAM and persistent: access latency, and read and write bandwidth
// (Figures 2.2 to 2.5 of "Building Distributed Systems with Non-Volatile Main Memories and RDMA
// Networks").
#pragma once

#include "bench/probe/access.h"
#include "bench/probe/host_memory.h"
#include "bench/probe/probe.h"

namespace perdura::bench {

// Returns all memory probes. `host` is null on the model, which has no page sizes.
ProbeSet memory_probes(const Effort& effort, const HostMemory* host);

// --- single probes, for tests and for other benchmarks

enum class CacheState : std::uint8_t { hot, flushed, cold };
// The latency of one load, in nanoseconds, of a chain of dependent loads in [0, working set) whose
// lines are in the given cache state.
std::vector<double> load_latency(Platform& platform, pmem::Medium medium, Pattern pattern,
                                 CacheState state, const Effort& effort, MemoryPlace place = {});

// Nanoseconds until an 8-byte write is persistent: store, clwb and fence, or a non-temporal store
// and a fence.
std::vector<double> persist_latency(Platform& platform, pmem::Medium medium, Access access,
                                    CacheState state, const Effort& effort, MemoryPlace place = {});

// A load on memory: `threads` threads, each of which streams through its own part of memory.
struct Stream {
  Access access = Access::load;
  Pattern pattern = Pattern::sequential;
  Bytes size = 256;
  std::uint32_t threads = 1;
  std::uint32_t load_share = 100;  // percentage of loads; the other accesses are of kind `access`
  MemoryPlace place{};
};
// The bandwidth in GB/s of all threads of the stream together.
std::vector<double> bandwidth(Platform& platform, pmem::Medium medium, Stream stream,
                              const Effort& effort);

// The latency of one load, in nanoseconds, of a cold random chain while the threads of `others`
// stream.
std::vector<double> loaded_latency(Platform& platform, pmem::Medium medium, Stream others,
                                   const Effort& effort);

// The number of bytes that the media write per byte issued. The platform must count writes at the
// level `compared` (pmem::WriteMeter).
std::vector<double> write_amplification(Platform& platform, Stream stream, const Effort& effort);

}  // namespace perdura::bench
