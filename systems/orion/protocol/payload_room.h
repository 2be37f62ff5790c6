// Memory for the payload of one request at a time, if it does not fit into a message. Few requests
// have such a payload, so the memory is allocated for the first one.
#pragma once

#include <memory>
#include <string>

#include "platform/platform.h"
#include "platform/runtime/sync.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

class PayloadRoom {
 public:
  // `access`: that of peers.
  PayloadRoom(Thread& thread, std::string region, fabric::Access access)
      : thread_(thread), name_(std::move(region)), access_(access) {}

  // kLargestPayload bytes.
  const fabric::MemoryRegion& memory() {
    if (!region_) {
      region_ = thread_.node.create_region(name_, kLargestPayload, pmem::Medium::dram);
      registered_ = thread_.endpoint.register_memory(*region_, access_);
    }
    return registered_;
  }
  // Acquired by whoever uses the memory.
  Semaphore turn{1};

 private:
  Thread& thread_;
  std::string name_;
  fabric::Access access_;
  std::unique_ptr<pmem::Region> region_;
  fabric::MemoryRegion registered_;
};

}  // namespace perdura::systems::orion
