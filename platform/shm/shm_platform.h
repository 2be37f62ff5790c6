// The platform on shared memory: the nodes are processes of one host (a process may be several
// nodes), time and concurrency are real, and the fabric is memory that the processes share.
//
// A process that ends, however it ends, breaks the connections of its nodes; another process may
// take a node's place afterwards and finds its persistent memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/fabric/shm/endpoint.h"
#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/peer.h"
#include "platform/host/host_platform.h"
#include "platform/shm/shm_node.h"

namespace perdura {

struct ShmOptions {
  // Processes with the same job name form a cluster. Empty: a cluster of this process alone.
  std::string job{};
  NodeId node_count = 1;
  // The nodes that this process is; empty: all of them.
  std::vector<NodeId> local_nodes{};
  // Where the files of persistent memory are: a DAX file system for the real thing, or a DAX device
  // or a path below it ("/dev/dax0.0/run"), to which its regions' names then belong. Empty: a place
  // in /dev/shm that goes away with the last process of the job.
  std::string pm_directory{};
  // By node; where there is none for it: anywhere.
  std::vector<Placement> placements{};
  // Time that each flushed line costs in addition; for the whole process.
  Nanoseconds write_latency{0};
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::compared;
  // How long another process of the job, stopped perhaps, may keep this one from joining.
  Picoseconds join_timeout = std::chrono::seconds(60);
  // Emulated network and retries.
  fabric::shm::FabricOptions fabric{};
};

class ShmPlatform final : public HostPlatform {
 public:
  // Throws UsageError or PlatformError.
  explicit ShmPlatform(ShmOptions options);
  ~ShmPlatform() override;

  std::string_view name() const override { return "shm"; }
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // The job directory; tests look into it.
  const std::string& job_directory() const { return job_.directory(); }

 private:
  void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                     const RunThread& run) override;
  // A node that has not joined the job yet does not count as ended.
  void meet_other_nodes(bool failed) override;
  void await_other_nodes();

  ShmOptions options_;
  fabric::shm::Job job_;
  fabric::shm::Watch watch_;
  std::uint32_t runs_;
  std::uint32_t next_barrier_ = 0;
};

}  // namespace perdura
