// Probes of the fabric between the nodes of a platform: latency, rate and bandwidth of its
// operations over message size, operations in flight, queue pairs and registered regions (Figure
// 2.7 of "Building Distributed Systems with Non-Volatile Main Memories and RDMA Networks").
//
// Some nodes are passive: they have persistent memory registered and receive buffers posted.
// Threads of the others connect to them and issue operations.
#pragma once

#include <span>

#include "bench/probe/probe.h"
#include "platform/fabric/fabric.h"

namespace perdura::bench {

// `pages` are the page sizes that node 0 can choose for its DRAM, apart from pmem::Pages::any. On
// the model there are none unless its profile has [translation], in which case registering memory
// takes modelled time, too.
ProbeSet rdma_probes(const Effort& effort, bool modelled, std::span<const pmem::Pages> pages);
// Those of them that depend on the NIC's translations of addresses, in memory of these pages.
ProbeSet translation_probes(const Effort& effort, bool modelled,
                            std::span<const pmem::Pages> pages);

// --- single ones, for tests and the characterization

enum class RdmaMetric : std::uint8_t {
  latency,    // ns per operation of a task, as the mean over the threads
  rate,       // Mop/s of all threads
  bandwidth,  // GB/s of all threads
  post,       // ns that a thread takes to post an operation, as the mean over the threads
};

struct RdmaLoad {
  fabric::Opcode opcode = fabric::Opcode::write;
  RdmaMetric metric = RdmaMetric::latency;
  bool inlined = false;
  bool answered =
      false;  // by a SEND of the same size; the operation lasts until the answer is there
  std::uint32_t size = 8;         // size of a message, or of the range of a FLUSH
  std::uint32_t depth = 1;        // operations in flight, per thread
  std::uint32_t queue_pairs = 1;  // per thread
  std::uint32_t regions = 1;      // registered by a passive node
  Bytes region_size = 4 * MiB;    // all of them together
  pmem::Pages pages{};            // the regions' pages: see Room
  std::uint32_t threads = 1;      // per active node
  NodeId active = 1;
  NodeId passive = 1;

  NodeId nodes() const { return active + passive; }
  Room room() const { return {region_size, pages}; }
};

// Returns no values if the device does not support the operation. Throws PlatformError if an
// operation fails.
std::vector<double> rdma(Platform& platform, RdmaLoad load, const Effort& effort,
                         const Gather& gather = alone);

// Nanoseconds to register the given memory of node 0 and to deregister it again.
std::vector<double> registration(Platform& platform, Room room, const Effort& effort);

// The capabilities that the devices report.
fabric::Capabilities capabilities(Platform& platform);

}  // namespace perdura::bench
