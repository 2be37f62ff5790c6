// Notices: unsolicited messages of a server to its clients, such as that they must access something
// in another way from now on.
//
// The server has buffers for the notices of each session and SENDs them to one session or to all.
// The client has a task of its own that receives everything of the session, since a notice may come
// at any time, also while no call waits for a reply. Its calls wait for what that task delivers
// (Calls::answer_to(call)).
//
//   NoticeBuffers<Message> notices;                         // server
//   notices.open(memory, first, 1);
//   notices.send_all(sessions, 0, message);
//
//   executor.spawn(rpc::receive_always(connection));        // client; connection->take_notice()
//
// Notices and replies of a connection arrive in the order in which they were sent. The client must
// have receive buffers for all notices that can be on their way, besides those for replies. A
// notice may be late: whatever depends on what clients know must wait for their acknowledgments,
// which are requests like others.
#pragma once

#include <cstdint>
#include <memory>

#include "platform/fabric/fabric.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"

namespace perdura::rpc {

// The server's buffers: the same number of slots for each session, each for one notice at a time.
template <class Notice>
class NoticeBuffers {
 public:
  static Bytes size(std::uint32_t sessions, std::uint32_t slots) {
    return Bytes{sessions} * slots * sizeof(Notice);
  }
  // `memory` must have size(sessions, slots) bytes from offset `first` on.
  void open(const fabric::MemoryRegion& memory, Bytes first, std::uint32_t slots) {
    memory_ = memory;
    first_ = first;
    slots_ = slots;
  }

  // Sends a notice to a session, if it has a connection. The slot may be used again when the client
  // is known to have received the notice.
  template <class Session>
  void send(Session& session, std::uint32_t slot, const Notice& notice) {
    if (session.is_free()) return;
    const Bytes index = Bytes{session.number} * slots_ + slot;
    const fabric::LocalBuffer buffer =
        memory_.local(first_ + index * sizeof(Notice), sizeof(Notice));
    write_message(buffer.bytes(), notice);
    rpc::send(*session.queue_pair, buffer, 0);
  }
  template <class Session>
  void send_all(SessionTable<Session>& sessions, std::uint32_t slot, const Notice& notice) {
    for (Session& session : sessions) send(session, slot, notice);
  }

 private:
  fabric::MemoryRegion memory_;
  Bytes first_ = 0;
  std::uint32_t slots_ = 0;
};

// Receives what the server sends, until the connection ends. A Client, which the session and this
// task share, has
//
//   completions                         of the session's connection
//   messages                            its ReceiveBuffers
//   message_of(completion)              reads the message
//   is_notice(message)
//   take_notice(message)                what to do about a notice; its buffer is then posted again
//   take_reply(message, completion)     delivers a reply to its call and posts the buffer again
//   ended()                             the connection is gone
template <class Client>
Task<> receive_always(std::shared_ptr<Client> client) {
  for (;;) {
    const fabric::ReceiveCompletion received = co_await client->completions.next();
    if (received.status != fabric::Status::success) break;
    const auto message = client->message_of(received);
    if (client->is_notice(message)) {
      client->take_notice(message);
      client->messages.post(received.buffer_id);
    } else {
      client->take_reply(message, received);
    }
  }
  client->ended();
}

}  // namespace perdura::rpc
