#include "platform/message_ring.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura {

MessageRings& rings_of(Node& node) {
  auto* const rings = dynamic_cast<MessageRings*>(&node);
  if (rings != nullptr) return *rings;
  throw UsageError(fmt::format(
      "node {} shares no memory with other nodes; sim and shm have message rings", node.id()));
}

void check_ring_message(const RingShape& shape, std::size_t length) {
  if (length <= shape.message_size) return;
  throw UsageError(fmt::format("a message of {} bytes in a ring for messages of up to {}", length,
                               shape.message_size));
}

void check_ring_room(const RingShape& shape, std::size_t room) {
  if (room >= shape.message_size) return;
  throw UsageError(
      fmt::format("{} bytes to receive messages of up to {}", room, shape.message_size));
}

void check_ring_shape(std::string_view name, const RingShape& shape) {
  if (shape.slots > 0 && shape.message_size > 0) return;
  throw UsageError(fmt::format("ring '{}' needs slots and a size of messages", name));
}

}  // namespace perdura
