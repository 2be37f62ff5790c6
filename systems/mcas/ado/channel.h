// The user-level IPC between a shard and the process of its active data objects (MCAS, section
// 4.1), over the two queues that a platform gives a process and its child. A message may be longer
// than a queue's: it goes in parts.
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

// Of all parts together.
inline constexpr Bytes kLongestMessage = 16 * MiB;
inline constexpr RingShape kQueue{.slots = 64, .message_size = 1024};

// One end. Must be created by make_shared; belongs to a thread.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Message {
    MessageKind kind = MessageKind::work;
    std::string body;
  };

  // `peer`: whose messages have room for more than a header.
  explicit Channel(std::shared_ptr<PeerProcess> peer)
      : peer_(std::move(peer)), room_(peer_->longest_message()), part_(room_.size()) {}

  // Sends in the order of calls, when there is room. False: it is too long, and nothing is sent.
  template <class Body>
  bool send(MessageKind kind, const Body& body) {
    Encoder encoder(std::move(encoded_));
    encoder(body);
    encoded_ = encoder.take();
    return send_encoded(kind);
  }
  // The next message, in the memory of the last one; false if the peer is gone, has sent what is no
  // message, or end() was called. One task at a time, which has the message.
  Task<bool> receive(Message& message);
  // Returns when the peer has taken all that send() was called with, or made room for it.
  Task<> until_sent();
  // From now on nothing is sent, and what is received is dropped.
  void end();

 private:
  bool send_encoded(MessageKind kind);
  static Task<> send_all(std::shared_ptr<Channel> self);
  bool take_part(Message& message, std::span<const std::byte> part, bool& last);

  std::shared_ptr<PeerProcess> peer_;
  std::vector<std::byte> room_;    // for the part that is received
  std::vector<std::byte> part_;    // for the part that is sent
  std::string encoded_;            // the message that is sent
  std::deque<std::string> parts_;  // to be sent when there is room, by a task
  bool sending_ = false;           // whether there is such a task
  std::uint64_t queued_ = 0;       // parts that were put there, and of these, that have been sent
  std::uint64_t sent_ = 0;
  WaitList part_sent_;
  bool ended_ = false;
};

}  // namespace perdura::systems::mcas::ado
