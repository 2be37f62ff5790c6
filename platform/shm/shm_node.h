// A node of the platform on shared memory. Other processes access its regions by mapping their
// files.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/node_memory.h"
#include "platform/host/host_node.h"

namespace perdura {

class ShmNode final : public HostNode {
 public:
  ShmNode(fabric::shm::Job& job, NodeId id, NodeId machine, const std::string& pm_directory,
          pmem::WriteMeter::Level accounting, Placement placement);

  fabric::shm::NodeMemory& memory() { return *memory_; }

 private:
  Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) override;
  std::shared_ptr<void> adopt(const std::string& path, pmem::Medium medium,
                              std::shared_ptr<pmem::mapped::Mapping> mapping) override;

  fabric::shm::Job& job_;
  // Shared with the regions, which may outlive the node.
  std::shared_ptr<fabric::shm::NodeMemory> memory_;
  std::atomic<unsigned> next_dram_{0};
};

}  // namespace perdura
