// The responder's side of remote persistence: lets requesters (methods/remote_persister.h)
// update a region by a method, executes the responder's steps, and reposts its receive buffers when
// their data is durable in the region.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "methods/handshake.h"
#include "methods/message.h"
#include "methods/message_ring.h"
#include "methods/setup.h"
#include "platform/platform.h"
#include "rpc/sessions.h"

namespace perdura::methods {

// Must be created by make_shared. Belongs to the thread that serves.
class Responder : public std::enable_shared_from_this<Responder> {
 public:
  // `target` is a region of the thread's node and must outlive this object. Receive buffers in
  // persistent memory are in a region named after the target, with ".messages" appended. Recovers:
  // when the constructor returns, the target holds all updates on which requesters may rely. Throws
  // UsageError if the method cannot run here.
  Responder(Thread& thread, pmem::Region& target, const PersisterSetup& setup);
  ~Responder();

  // Accepts requesters and serves them; does not return.
  Task<> serve();

  // Accepts no more requesters, and asks the connected ones to disconnect after their update in
  // flight. Otherwise the outcome of a requester's last update could stay unknown until the
  // responder serves again.
  void begin_end();
  // True if a requester is still connected.
  bool has_requesters() const;

  // The number of messages that the constructor has replayed.
  std::uint64_t replayed() const { return replayed_; }
  std::uint64_t messages() const { return messages_; }  // received since then

 private:
  struct RequesterSession {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> receive_queue;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    Role role = Role::writer;
    std::size_t step = 0;        // the index of the "receive" that waits
    std::uint64_t received = 0;  // sequence number of the last message
    std::uint64_t posted = 0;    // sequence number of the last posted buffer
    std::uint64_t settled = 0;   // that of the last message whose data is durable in the target
    bool is_free() const { return queue_pair == nullptr; }
  };
  // A received message, and the updates that it describes.
  struct Incoming {
    MessageHeader header;
    std::span<const std::byte> message;  // empty if the message carries no data
  };

  void accept(fabric::ConnectionRequest& request);
  void handle(const fabric::ReceiveCompletion& completion);
  bool understand(const fabric::ReceiveCompletion& completion, Incoming& incoming) const;
  void do_steps(RequesterSession& session, const Incoming& incoming);
  void copy(const Incoming& incoming, std::size_t update);
  void apply_later(const Incoming& incoming);
  void acknowledge(RequesterSession& session);
  void send_count(RequesterSession& session, Bytes place, Acknowledgment count);
  Rejection::Reason rejection_of(const Hello& hello) const;
  void settle(RequesterSession& session);
  void post_buffers(RequesterSession& session);
  void disconnect(RequesterSession& session);
  bool is_replayed() const { return applied_later_ && ring_.is_persistent(); }

  Thread& thread_;
  pmem::Region& target_;
  PersisterSetup setup_;
  bool applied_later_;
  std::uint64_t settle_after_;  // number of messages
  MessageRing ring_;
  std::uint64_t replayed_ = 0;
  std::uint64_t messages_ = 0;
  fabric::MemoryRegion target_memory_;
  fabric::MemoryRegion buffer_memory_;
  std::unique_ptr<pmem::Region> acks_;
  fabric::MemoryRegion ack_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<RequesterSession> sessions_;
  bool ending_ = false;
};

}  // namespace perdura::methods
