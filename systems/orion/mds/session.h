// A client's session, as the MDS knows it. Belongs to the network thread that accepted it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

struct MdsSession {
  std::uint32_t number = 0;  // among those of its network thread
  SessionId id{};
  std::unique_ptr<fabric::ReceiveQueue> buffers;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  std::vector<std::uint64_t>
      forced;                 // by store: the last WRITE with an immediate that it has forced
  std::uint32_t running = 0;  // requests under way
  bool ended = false;         // the connection is gone, but requests may still be under way

  bool is_free() const { return queue_pair == nullptr; }
};

}  // namespace perdura::systems::orion
