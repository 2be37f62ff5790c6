// The user-level IPC between a shard and the process of its active data objects (MCAS, section
// 4.1): two message rings, one in each direction. A message may be longer than a slot of a ring: it
// goes in parts.
//
// Both sides know the launch whose messages are meant. What a side that has died has left in the
// rings belongs to another launch and is dropped, and so is the message of which it has sent only
// some parts.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "platform/message_ring.h"
#include "platform/runtime/sync.h"
#include "systems/mcas/ado/codec.h"
#include "systems/mcas/ado/messages.h"

namespace perdura::systems::mcas::ado {

// Of all parts together. A longer one is refused where it would be made.
inline constexpr Bytes kLongestMessage = 16 * MiB;
inline constexpr RingShape kRingShape{.slots = 64, .message_size = 1024};

enum class Side : std::uint8_t { shard, process };

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Message {
    MessageKind kind = MessageKind::work;
    std::string body;
  };

  // One end of the channel that belongs to a memory of this name, to be opened by a task of the
  // thread that uses it. Throws UsageError if the other end's owner, or the platform, cannot have
  // rings.
  static std::shared_ptr<Channel> open(Node& node, const std::string& memory, Side side);

  // From now on only messages of this launch are sent and received.
  void begin(std::uint64_t launch);
  // Nobody will send to this side any more: who waits for a message gets nothing.
  void end();

  // Sends in the order of calls, when the ring has room.
  template <class Body>
  void send(MessageKind kind, const Body& body) {
    send_bytes(kind, encoded(body));
  }
  // The next message, or nothing if the launch has ended. One task at a time.
  Task<std::optional<Message>> receive();

 private:
  Channel(std::unique_ptr<RingProducer> out, std::unique_ptr<RingConsumer> in)
      : out_(std::move(out)), in_(std::move(in)) {}

  void send_bytes(MessageKind kind, const std::string& body);
  static Task<> push_all(std::shared_ptr<Channel> self);
  static Task<> pop_all(std::shared_ptr<Channel> self);
  void take_part(std::span<const std::byte> part);

  std::unique_ptr<RingProducer> out_;
  std::unique_ptr<RingConsumer> in_;
  std::uint64_t launch_ = 0;       // 0: none
  std::deque<std::string> parts_;  // to be pushed
  WaitList has_parts_;
  Message incoming_;  // of which not all parts have come
  std::deque<Message> received_;
  WaitList has_received_;
};

}  // namespace perdura::systems::mcas::ado
