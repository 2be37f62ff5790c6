// A node of the platform on shared memory. Other processes access its regions by mapping their
// files.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/node_memory.h"
#include "platform/fabric/tcp/rendezvous.h"
#include "platform/host/host_node.h"
#include "platform/message_ring.h"

namespace perdura {

class ShmNode final : public HostNode, public MessageRings {
 public:
  ShmNode(fabric::shm::Job& job, NodeId id, NodeId machine, const std::string& pm_directory,
          const std::string& disk_directory, pmem::WriteMeter::Level accounting,
          Placement placement, std::shared_ptr<fabric::tcp::Rendezvous> rendezvous,
          Picoseconds connection_timeout);

  std::unique_ptr<RingProducer> open_producer(std::string_view name, RingShape shape) override;
  std::unique_ptr<RingConsumer> open_consumer(std::string_view name, RingShape shape) override;

  std::unique_ptr<fabric::Endpoint> create_socket_endpoint(Thread& thread,
                                                           fabric::Port port) override;

  fabric::shm::NodeMemory& memory() { return *memory_; }

 private:
  Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) override;
  std::shared_ptr<void> adopt(const std::string& path, pmem::Medium medium,
                              std::shared_ptr<pmem::mapped::Mapping> mapping) override;

  std::string ring_path(std::string_view name) const;
  std::uint64_t life() const;

  fabric::shm::Job& job_;
  // Shared with the regions, which may outlive the node.
  std::shared_ptr<fabric::shm::NodeMemory> memory_;
  std::atomic<unsigned> next_dram_{0};
  std::shared_ptr<fabric::tcp::Rendezvous> rendezvous_;  // where socket endpoints find each other
  Picoseconds connection_timeout_;
};

}  // namespace perdura
