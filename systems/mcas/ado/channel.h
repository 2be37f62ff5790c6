// The user-level IPC between a shard and the process of its active data objects (MCAS, section
// 4.1), over the two queues that a platform provides between a process and its child. A message
// that is longer than a slot of the queue is sent in parts.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "systems/mcas/ado/codec.h"
#include "systems/mcas/ado/messages.h"

namespace perdura::systems::mcas::ado {

// The limit for all parts of a message together.
inline constexpr Bytes kLongestMessage = 16 * MiB;
inline constexpr RingShape kQueue{.slots = 64, .message_size = 1024};

// One end of the channel. Must be created by make_shared, and used by one thread only.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Message {
    MessageKind kind = MessageKind::work;
    std::string body;
  };

  // A message of `peer` must have room for more than a PartHeader.
  explicit Channel(std::shared_ptr<PeerProcess> peer)
      : peer_(std::move(peer)), room_(peer_->longest_message()), part_(room_.size()) {}

  // Sends in the order of calls, as soon as there is room. Returns false if the message is too
  // long; then nothing is sent.
  template <class Body>
  bool send(MessageKind kind, const Body& body) {
    Encoder encoder(std::move(encoded_));
    encoder(body);
    encoded_ = encoder.take();
    return send_encoded(kind);
  }
  // Receives the next message into `message`, reusing its memory. Returns false if the peer is
  // gone, has sent something that is not a message, or end() was called. Only one task may receive
  // at a time.
  Task<bool> receive(Message& message);
  // Returns when everything passed to send() so far is in the queue to the peer, or end() was
  // called.
  Task<> until_sent();
  // From now on nothing is sent, and messages received are dropped.
  void end();

 private:
  bool send_encoded(MessageKind kind);
  static Task<> send_all(std::shared_ptr<Channel> self);
  bool take_part(Message& message, std::span<const std::byte> part, bool& last);

  std::shared_ptr<PeerProcess> peer_;
  std::vector<std::byte> room_;    // the part that is received
  std::vector<std::byte> part_;    // the part that is sent
  std::string encoded_;            // the message that is sent
  std::deque<std::string> parts_;  // parts that wait for room in the queue
  bool sending_ = false;           // true while a task sends `parts_`
  std::uint64_t queued_ = 0;       // parts ever added to `parts_`; `sent_` of them have been sent
  std::uint64_t sent_ = 0;
  WaitList part_sent_;
  bool ended_ = false;
};

}  // namespace perdura::systems::mcas::ado
