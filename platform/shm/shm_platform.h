// The platform `shm`: nodes are processes of one host (one process may be several nodes), time and
// concurrency are real, and the fabric is implemented in memory that the processes share.
//
// When a process ends, for whatever reason, the connections of its nodes break. Afterwards another
// process may take a node's place and finds its persistent memory.
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
  // The nodes that belong to this process; empty: all nodes.
  std::vector<NodeId> local_nodes{};
  // Nodes that share the persistent memory of a machine; the same in every process of the job. Each
  // is a node of its own in everything else: it has its own process, or the same one.
  Machines machines{};
  // The directory of the files of persistent memory. For real persistent memory: a directory of a
  // DAX file system, a DAX device, or a path below a device ("/dev/dax0.0/run"), with which the
  // names of its regions then begin. Empty: a directory in /dev/shm that is removed with the last
  // process of the job.
  std::string pm_directory{};
  // An alternative to pm_directory for nodes of one machine: the directory of their files itself,
  // or a DAX device.
  std::string pm_directory_of_nodes{};
  // How existing regions are opened.
  pmem::mapped::Access pm_access = pmem::mapped::Access::in_place;
  // The directory of the files of regions on a disk. Empty: beside those of persistent memory.
  std::string disk_directory{};
  // The placement of each node; nodes beyond the end of the list run anywhere.
  std::vector<Placement> placements{};
  // Emulated write latency: additional time that each flushed line costs, in the whole process.
  Nanoseconds write_latency{0};
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::compared;
  // False: nodes come and go, and no run waits for other nodes at its end; there are no barriers.
  bool meets = true;
  // How long to wait if another process of the job, perhaps a stopped one, keeps this one from
  // joining.
  Picoseconds join_timeout = std::chrono::seconds(60);
  // The emulated network and its retries.
  fabric::shm::FabricOptions fabric{};
};

class ShmPlatform final : public HostPlatform {
 public:
  // Throws UsageError or PlatformError.
  explicit ShmPlatform(ShmOptions options);
  ~ShmPlatform() override;

  std::string_view name() const override { return "shm"; }
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // The job's directory, for tests.
  const std::string& job_directory() const { return job_.directory(); }

 private:
  void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                     const RunThread& run) override;
  // Also waits for nodes that have not joined the job yet.
  void meet_other_nodes(bool failed) override;
  void await_other_nodes();

  ShmOptions options_;
  fabric::shm::Job job_;
  fabric::shm::Watch watch_;
  std::uint32_t runs_;
  std::uint32_t next_barrier_ = 0;
};

}  // namespace perdura
