// The server's side: which sessions there are, and whose what arrives is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "platform/fabric/fabric.h"

namespace perdura::rpc {

// The sessions that a server has room for, numbered from 0; a number is used again when its session
// has ended. A Session has a `number`, says by `is_free()` whether it has no connection, and owns
// its connections: one, or several.
template <class Session>
class SessionTable {
 public:
  explicit SessionTable(std::uint32_t count) : sessions_(count) {
    for (std::uint32_t i = 0; i < count; ++i) sessions_[i].number = i;
  }

  std::size_t size() const { return sessions_.size(); }
  Session& operator[](std::size_t number) { return sessions_[number]; }
  const Session& operator[](std::size_t number) const { return sessions_[number]; }
  auto begin() { return sessions_.begin(); }
  auto end() { return sessions_.end(); }
  auto begin() const { return sessions_.begin(); }
  auto end() const { return sessions_.end(); }

  // The free session of the lowest number; null if there is none.
  Session* find_free() {
    const auto free = std::find_if(sessions_.begin() + first_perhaps_free_, sessions_.end(),
                                   [](const Session& session) { return session.is_free(); });
    first_perhaps_free_ = free - sessions_.begin();
    return free == sessions_.end() ? nullptr : &*free;
  }

  // What arrives over this connection is the session's, until it is forgotten: before it goes.
  void connected(const fabric::QueuePair& queue_pair, const Session& session) {
    number_of_[&queue_pair] = session.number;
  }
  void forget(const fabric::QueuePair& queue_pair) {
    const auto found = number_of_.find(&queue_pair);
    if (found == number_of_.end()) return;
    first_perhaps_free_ = std::min<std::ptrdiff_t>(first_perhaps_free_, found->second);
    number_of_.erase(found);
  }
  // Null if it is no connection of a session.
  Session* of(const fabric::QueuePair* queue_pair) {
    const auto found = number_of_.find(queue_pair);
    return found == number_of_.end() ? nullptr : &sessions_[found->second];
  }

  // Ends all of them.
  void clear() {
    number_of_.clear();
    sessions_.clear();
  }

 private:
  std::vector<Session> sessions_;
  std::ptrdiff_t first_perhaps_free_ = 0;  // those before it are not
  std::unordered_map<const fabric::QueuePair*, std::uint32_t> number_of_;
};

// Hands every peer that wants to connect to `accept(request)`, which answers it. Does not end by
// itself; `accept` owns what it needs.
template <class Accept>
Task<> accept_connections(fabric::Endpoint& endpoint, Accept accept) {
  for (;;) {
    const std::unique_ptr<fabric::ConnectionRequest> request = co_await endpoint.next_connection();
    accept(*request);
  }
}

// SENDs a reply or a notice, which the device takes at once if it is no longer than `max_inline`;
// else its buffer must stay as it is until the client has answered it or asked again.
inline void send(fabric::QueuePair& queue_pair, const fabric::LocalBuffer& message,
                 std::uint32_t max_inline) {
  fabric::WorkRequest request{.opcode = fabric::Opcode::send};
  request.flags.inlined = message.length <= max_inline;
  request.local = message;
  queue_pair.post_unsignaled(request);
}

}  // namespace perdura::rpc
