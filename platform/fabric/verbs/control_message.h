// The control messages of a job, sent over TCP between processes and directly within a process. All
// hosts are x86-64, so integers are sent in their memory representation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "platform/fabric/types.h"

namespace perdura::fabric::verbs {

enum class MessageKind : std::uint32_t {
  // Joining: a process to the coordinator, and back when all are there.
  hello = 1,
  welcome,
  // Connections, between endpoints; `from_id` and `to_id` name the ends.
  connect,
  unreachable,  // nobody listens there (yet)
  refused,
  accepted,
  established,  // the initiator's end can receive
  disconnected,
  // Registered memory: the range that a key stands for.
  lookup,
  found,
  // The run.
  arrived_at_barrier,
  passed_barrier,
  ended_run,
  listening,  // `from` has a TCP port for socket endpoints (platform/verbs/verbs_rendezvous.h)
  lost,       // the process of node `from.node` has ended
  // Within a process, from the connection manager: the connection of `to_id` has ended.
  ended,
};
inline constexpr auto kLastMessageKind = MessageKind::lost;  // the last kind that is sent between
                                                             // processes

struct Message {
  MessageKind kind = MessageKind::hello;
  Address from{};
  Address to{};
  std::uint64_t from_id = 0;
  std::uint64_t to_id = 0;
  std::array<std::uint64_t, 6> words{};
  std::vector<std::byte> data{};
};

inline constexpr std::uint32_t kMaxMessageData = 1U << 20;

std::vector<std::byte> encode(const Message& message);

// Extracts messages from a stream of bytes.
class MessageReader {
 public:
  void add(std::span<const std::byte> bytes);
  // Returns nullopt while the next message is incomplete. Throws PlatformError if the bytes are not
  // a message, which means that another program is at the other end.
  std::optional<Message> next();

 private:
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;
};

}  // namespace perdura::fabric::verbs
