// The server's side: its sessions, and the mapping from a received message to its session.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "platform/fabric/fabric.h"

namespace perdura::rpc {

// The sessions for which a server has room, numbered from 0; a number is reused when its session
// has ended. A Session has a `number`, tells by `is_free()` whether it has no connection, and owns
// its connection or connections.
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

  // The free session with the lowest number; null if there is none.
  Session* find_free() {
    const auto free = std::find_if(sessions_.begin() + first_perhaps_free_, sessions_.end(),
                                   [](const Session& session) { return session.is_free(); });
    first_perhaps_free_ = free - sessions_.begin();
    return free == sessions_.end() ? nullptr : &*free;
  }

  // From now on messages over this connection belong to the session, until forget(), which must be
  // called before the connection is destroyed.
  void connected(const fabric::QueuePair& queue_pair, const Session& session) {
    number_of_[&queue_pair] = session.number;
  }
  void forget(const fabric::QueuePair& queue_pair) {
    const auto found = number_of_.find(&queue_pair);
    if (found == number_of_.end()) return;
    first_perhaps_free_ = std::min<std::ptrdiff_t>(first_perhaps_free_, found->second);
    number_of_.erase(found);
    last_ = {};
  }
  // Null if the connection belongs to no session.
  Session* of(const fabric::QueuePair* queue_pair) {
    if (queue_pair == last_.queue_pair) return last_.session;
    const auto found = number_of_.find(queue_pair);
    if (found == number_of_.end()) return nullptr;
    last_ = {queue_pair, &sessions_[found->second]};
    return last_.session;
  }

  // Ends all sessions.
  void clear() {
    last_ = {};
    number_of_.clear();
    sessions_.clear();
  }

 private:
  std::vector<Session> sessions_;
  std::ptrdiff_t first_perhaps_free_ = 0;  // the sessions before it are in use
  std::unordered_map<const fabric::QueuePair*, std::uint32_t> number_of_;
  // The session looked up last: messages of a session often come one after the other.
  struct {
    const fabric::QueuePair* queue_pair = nullptr;
    Session* session = nullptr;
  } last_;
};

// Passes every connection request to `accept(request)`, which answers it. Does not return. `accept`
// must own what it uses.
template <class Accept>
Task<> accept_connections(fabric::Endpoint& endpoint, Accept accept) {
  for (;;) {
    const std::unique_ptr<fabric::ConnectionRequest> request = co_await endpoint.next_connection();
    accept(*request);
  }
}

// SENDs a reply or a notice. If the message is longer than `max_inline`, its buffer must not change
// until the client has answered or has sent its next request.
inline void send(fabric::QueuePair& queue_pair, const fabric::LocalBuffer& message,
                 std::uint32_t max_inline) {
  fabric::WorkRequest request{.opcode = fabric::Opcode::send};
  request.flags.inlined = message.length <= max_inline;
  request.local = message;
  queue_pair.post_unsignaled(request);
}

}  // namespace perdura::rpc
