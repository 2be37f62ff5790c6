// A node of the platform `verbs`. Its regions can be registered with the RDMA device; its DRAM is
// anonymous memory.
#pragma once

#include <memory>
#include <string>

#include "platform/fabric/tcp/rendezvous.h"
#include "platform/fabric/verbs/node_memory.h"
#include "platform/host/host_node.h"

namespace perdura {

class VerbsNode final : public HostNode {
 public:
  VerbsNode(const runtime::HostClock& clock, NodeId id, const std::string& pm_directory,
            const std::string& disk_directory, pmem::WriteMeter::Level accounting,
            Placement placement, std::shared_ptr<fabric::verbs::NodeMemory> memory,
            std::shared_ptr<fabric::tcp::Rendezvous> rendezvous, Picoseconds connection_timeout)
      : HostNode(clock, id, id, pm_directory, disk_directory, accounting, std::move(placement)),
        memory_(std::move(memory)),
        rendezvous_(std::move(rendezvous)),
        connection_timeout_(connection_timeout) {}

  std::unique_ptr<fabric::Endpoint> create_socket_endpoint(Thread& thread,
                                                           fabric::Port port) override;

  // Tests whether the device supports FLUSH for persistence of this node's persistent memory.
  void try_flush_persistence();

  const std::shared_ptr<fabric::verbs::NodeMemory>& memory() const { return memory_; }

 private:
  Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) override;
  std::shared_ptr<void> adopt(const std::string& path, pmem::Medium medium,
                              std::shared_ptr<pmem::mapped::Mapping> mapping) override;

  // Shared with the regions, which may outlive the node.
  std::shared_ptr<fabric::verbs::NodeMemory> memory_;
  // Where socket endpoints find each other; null if the job has none.
  std::shared_ptr<fabric::tcp::Rendezvous> rendezvous_;
  Picoseconds connection_timeout_;
};

}  // namespace perdura
