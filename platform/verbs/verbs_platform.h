// The platform `verbs`, on libibverbs (rdma-core): nodes are processes of any hosts whose RDMA
// devices can reach each other (one process may be several nodes), and connections are
// reliable-connected (RC) queue pairs.
//
// The processes find each other over TCP (fabric/verbs/control_plane.h), in one of two kinds of
// jobs. When a process ends, for whatever reason, the connections of its nodes break.
//
// * In a fixed job all processes exist from its beginning to its end. One of them, the coordinator,
//   accepts connections on its listener, and the others are given the listener's address. No other
//   process can take the place of one that has ended.
// * An open job can be joined and left at any time. Processes know the addresses at which others
//   listen, and a process that has ended can be started again, as the same node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/fabric/tcp/sockets.h"
#include "platform/fabric/verbs/device.h"
#include "platform/fabric/verbs/endpoint.h"
#include "platform/fabric/verbs/fixed_job.h"
#include "platform/fabric/verbs/open_job.h"
#include "platform/host/host_platform.h"
#include "platform/verbs/verbs_node.h"
#include "platform/verbs/verbs_rendezvous.h"

namespace perdura {

// A process's membership in an open job. The process is one node; its threads do not meet at
// barriers and have no socket endpoints, and run() does not wait for other processes.
struct OpenMembership {
  std::string job{};                                  // its name
  std::optional<fabric::tcp::HostAndPort> listens{};  // where others reach it; none: they do not
};

struct VerbsOptions {
  NodeId node_count = 1;
  // The nodes that belong to this process; empty: all nodes.
  std::vector<NodeId> local_nodes{};
  // In the coordinator, `listener` is set. In other processes, `coordinator` is the address of that
  // listener (ControlListener::address). Neither is set if this process is all nodes, or if the job
  // is open.
  std::shared_ptr<fabric::verbs::ControlListener> listener{};
  std::string coordinator{};
  std::optional<OpenMembership> open{};
  fabric::verbs::DeviceOptions device{};
  // The directory of the files of persistent memory. For real persistent memory: a DAX device,
  // since memory of DAX file systems cannot be registered. Empty: a directory in /dev/shm that
  // belongs to this object and is removed with it.
  std::string pm_directory{};
  // An alternative to pm_directory: the directory of the files of this process's nodes itself, or a
  // DAX device.
  std::string pm_directory_of_nodes{};
  // The directory of the files of regions on a disk. Empty: beside those of persistent memory.
  std::string disk_directory{};
  // The placement of each node; nodes beyond the end of the list run anywhere.
  std::vector<Placement> placements{};
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::compared;
  fabric::verbs::FabricOptions fabric{};
};

class VerbsPlatform final : public HostPlatform {
 public:
  // Throws UsageError, NodeRuns or PlatformError; the message says what is missing and which
  // platform would work.
  explicit VerbsPlatform(VerbsOptions options);
  ~VerbsPlatform() override;

  std::string_view name() const override { return "verbs"; }
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  const fabric::verbs::Device& device() const { return *device_; }

  // The control plane of an open job; null in a fixed one.
  fabric::verbs::OpenJob* open_job() const { return open_; }

 private:
  void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                     const RunThread& run) override;
  void meet_other_nodes(bool failed) override;
  void join_fixed_job();
  void join_open_job();
  void find_range(const fabric::verbs::Message& lookup, fabric::verbs::Message& found) const;

  // A directory that the destructor removes.
  class TemporaryDirectory {
   public:
    explicit TemporaryDirectory(bool wanted);
    ~TemporaryDirectory();
    const std::string& path() const { return path_; }

   private:
    std::string path_;
  };

  VerbsOptions options_;
  TemporaryDirectory temporary_;
  std::shared_ptr<fabric::verbs::Device> device_;
  std::map<NodeId, std::shared_ptr<fabric::verbs::NodeMemory>> memory_;
  std::shared_ptr<VerbsRendezvous> rendezvous_;  // null in an open job
  std::unique_ptr<fabric::verbs::ControlPlane> control_;
  // Both point to control_, which is one of the two; the other pointer is null.
  fabric::verbs::FixedJob* fixed_ = nullptr;
  fabric::verbs::OpenJob* open_ = nullptr;
  std::uint64_t runs_ = 0;
};

}  // namespace perdura
